# 253_reads_what_it_is_given.py - a flag and a whole number are read.
# task: flagged
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void turn(const float* x, float* y, int n, int columns, int shift, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / columns;
    int to = (i % columns + shift % columns + columns) % columns;
    if (i < n) y[row * columns + to] = x[i] * by;
}

torch::Tensor run(torch::Tensor x, int64_t shift, bool negate) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    turn<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, x.size(1), shift, negate ? -1.f : 2.f);
    return y;
}
"""
mod = load_inline(name="own", cpp_sources="torch::Tensor run(torch::Tensor x, int64_t shift, bool negate);",
                  cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x, shift, negate):
        return mod.run(x, shift, negate)
