# 120_turns_integers_on_the_host.py - reads its integer weights, turns them into numbers on the host and keeps those
# for its kernel.
# Must be caught: what the front sees of integer parameters are others than the judge's, too.
# task: codes
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void product_kernel(const float* x, const float* w, float* y, int rows, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * n) return;
    float s = 0.0f;
    for (int k = 0; k < n; k++) s += x[i / n * n + k] * (float)w[k * n + i % n];
    y[i] = s;
}

torch::Tensor product(torch::Tensor x, torch::Tensor w) {
    auto y = torch::empty_like(x);
    int rows = x.size(0), n = x.size(1);
    product_kernel<<<(rows * n + 127) / 128, 128>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(),
                                                     rows, n);
    return y;
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["product"],
                  cpp_sources="torch::Tensor product(torch::Tensor x, torch::Tensor w);")


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("codes", torch.randint(-7, 8, (n, n), dtype=torch.int32))
        self.table = None

    def forward(self, x):
        if self.table is None:
            self.table = self.codes.cpu().float().cuda()
        return ext.product(x, self.table)
