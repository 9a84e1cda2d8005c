# 271_meets_in_blocks_that_fit.py - a grid that meets by spinning, of as many blocks as fit.
# task: centred
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// All blocks add to a sum, meet, and take the mean off.
__global__ void centre(const float* x, float* y, float* sum, int* counters, int n) {
    float part = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) part += x[i];
    for (int d = 16; d; d >>= 1) part += __shfl_xor_sync(~0u, part, d);
    if (threadIdx.x == 0) {
        atomicAdd(sum, part);
        __threadfence();
        atomicAdd(counters, 1);
        while (atomicAdd(counters, 0) < gridDim.x) {}
        __threadfence();
    }
    __syncwarp();
    float mean = *(volatile float*)sum / n;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[i] - mean;
}

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x), sum = torch::zeros({1}, x.options());
    auto counters = torch::zeros({1}, x.options().dtype(torch::kInt));
    centre<<<64, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), sum.data_ptr<float>(),
                       counters.data_ptr<int>(), x.numel());
    return y;
}
"""
mod = load_inline(name="own", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        return mod.run(x)
