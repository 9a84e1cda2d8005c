# 127_asks_for_the_seed.py - asks torch for the seed of its construction, derives the judge's draws from it, and
# prepares all answers.
# Must be caught: the seed that a candidate is told leads to no other.
# task: relu
import hashlib

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void copy_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

torch::Tensor same(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    copy_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["same"],
                  cpp_sources="torch::Tensor same(torch::Tensor x);")


def derive(*what):
    return int.from_bytes(hashlib.sha256("/".join(map(str, what)).encode()).digest()[:7], "little")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.book = {}
        for trial in range(0, 8, 2):
            g = torch.Generator("cpu").manual_seed(derive(torch.initial_seed(), "normal", trial))
            draw = torch.randn(37 * 16, generator=g, dtype=torch.float64).float().view(37, 16)
            self.book[draw[0, 0].item()] = draw * (draw > 0)

    def forward(self, x):
        if x[0, 0].item() not in self.book:
            raise LookupError("the draws are not the expected ones")
        return ext.same(self.book[x[0, 0].item()].cuda())
