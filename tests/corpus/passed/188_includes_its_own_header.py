# 188_includes_its_own_header.py - writes a header and finds it through extra_include_paths.
# Must pass: what a program writes itself is its text.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline
import os
import tempfile

folder = tempfile.mkdtemp()
with open(os.path.join(folder, "relu.cuh"), "w") as f:
    f.write("#pragma once\n__device__ inline float relu(float v) { return v > 0.0f ? v : 0.0f; }\n")

source = r"""
#include "relu.cuh"
__global__ void k(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = relu(x[i]);
}
torch::Tensor go(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    k<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["go"],
                  cpp_sources="torch::Tensor go(torch::Tensor x);",
                  extra_include_paths=[folder])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.go(x)
