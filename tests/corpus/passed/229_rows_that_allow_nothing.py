# 229_rows_that_allow_nothing.py - a row that allows nothing has the mean 0.
# task: mean_of_the_allowed
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void mean(const float* x, const bool* mask, float* y, int n, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0, c = 0;
    for (int j = 0; j < d; j++)
        if (mask[i * d + j]) s += x[i * d + j], c += 1;
    y[i] = s / fmaxf(c, 1.0f);
}

torch::Tensor run(torch::Tensor x, torch::Tensor mask) {
    auto y = torch::empty({x.size(0)}, x.options());
    int n = x.size(0);
    mean<<<(n + 31) / 32, 32>>>(x.data_ptr<float>(), mask.data_ptr<bool>(), y.data_ptr<float>(), n, x.size(1));
    return y;
}
"""
ext = load_inline(name="mean_of_the_allowed",
                  cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor mask);",
                  cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x, mask):
        return ext.run(x, mask)
