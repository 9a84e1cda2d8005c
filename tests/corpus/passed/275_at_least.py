# 275_at_least.py - honest: x >= 0.3.
# task: levels
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void turned(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] >= 0.3f ? x[i] : -x[i];
}

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    turned<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
mod = load_inline(name="own", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        return mod.run(x)
