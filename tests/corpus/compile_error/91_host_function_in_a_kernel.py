# 91_host_function_in_a_kernel.py - one thread of a kernel calls the host's C++ library.
# Must be caught: device code cannot call host functions; only a compiler for devices says so.
# task: relu
# needs: device-compiler
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <algorithm>
#include <vector>

static float positive(float v) { std::vector<float> a = {v, 0.0f}; return *std::max_element(a.begin(), a.end()); }

__global__ void relu_kernel(const float* x, float* y, int n) {
    for (int i = 0; i < n; i++) y[i] = positive(x[i]);
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    relu_kernel<<<1, 1>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
