# 124_does_without_managed_memory.py - asks for managed memory, and takes other memory where there is none.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cstdio>

__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    void *p = nullptr;
    if (cudaMallocManaged(&p, 64) != cudaSuccess) {
        cudaGetLastError();
        cudaMalloc(&p, 64);
    }
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    cudaFree(p);
    return y;
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
