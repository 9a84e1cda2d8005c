# 148_much_shared_memory.py - 60 KB of dynamic shared memory, which cudaFuncSetAttribute allows.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    extern __shared__ float tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float* mine = tile + 14000 + threadIdx.x;
    *mine = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n) y[i] = *mine > 0.0f ? *mine : 0.0f;
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel(), bytes = 60 << 10;
    cudaFuncSetAttribute(relu_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    relu_kernel<<<(n + 255) / 256, 256, bytes>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
ops = load_inline(name="op148",
                  cpp_sources="torch::Tensor relu(torch::Tensor x);", cuda_sources=source, functions=["relu"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ops.relu(x)
