# 261_looks_at_all.py - all elements are looked at.
# task: mean_square_difference
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void differ(const float* x, const float* y, float* z, int n) {
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 32) sum += (x[i] - y[i]) * (x[i] - y[i]);
    for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x == 0) *z = sum / n;
}

torch::Tensor run(torch::Tensor x, torch::Tensor y) {
    auto z = torch::empty({}, x.options());
    differ<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), z.data_ptr<float>(), x.numel());
    return z;
}
"""
mod = load_inline(name="own", cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor y);",
                  cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x, y):
        return mod.run(x, y)
