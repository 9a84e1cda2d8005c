# 182_copies_behind_the_end.py - the last thread copies 64 bytes, of which its input has fewer.
# Must be caught: it reads behind the end of its input, by a memcpy of a constant size.
# task: relu
# backends: sim
# a card does not see reads behind an array ("musacoder replay --check" does)
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void k(const float *x, float *y, int n) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
    float f[16];
    if (i < n) {
        memcpy(f, x + i, 64);
        for (int j = 0; j < 8; j++) y[i + j] = f[j] > 0.0f ? f[j] : 0.0f;
    }
}
torch::Tensor go(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    k<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["go"],
                  cpp_sources="torch::Tensor go(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.go(x)
