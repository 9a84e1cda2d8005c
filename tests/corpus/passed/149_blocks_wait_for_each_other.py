# 149_blocks_wait_for_each_other.py - one cooperative launch: all blocks put down a part, wait for each other, and
# take another one's.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cooperative_groups.h>
__global__ void relu_kernel(const float* x, float* t, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        t[i] = x[i] > 0.0f ? x[i] : 0.0f;
    cooperative_groups::this_grid().sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[n - 1 - i] = t[n - 1 - i];
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x), t = torch::empty_like(x);
    const float* a = x.data_ptr<float>();
    float *b = t.data_ptr<float>(), *c = y.data_ptr<float>();
    int n = x.numel();
    void* args[] = {&a, &b, &c, &n};
    cudaLaunchCooperativeKernel((void*)relu_kernel, dim3(4), dim3(128), args, 0, 0);
    return y;
}
"""
ops = load_inline(name="op149",
                  cpp_sources="torch::Tensor relu(torch::Tensor x);", cuda_sources=source, functions=["relu"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ops.relu(x)
