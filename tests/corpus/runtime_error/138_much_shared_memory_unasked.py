# 138_much_shared_memory_unasked.py - takes 96 KB of dynamic shared memory without asking.
# Must be refused at the launch, with its line: no device gives it.
# task: rowsum
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void sum_kernel(const float* x, float* y, int n) {
    extern __shared__ float row[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) row[i] = x[(size_t)blockIdx.x * n + i];
    __syncthreads();
    if (threadIdx.x == 0) {
        float s = 0.0f;
        for (int i = 0; i < n; i++) s += row[i];
        y[blockIdx.x] = s;
    }
}

torch::Tensor sum(torch::Tensor x) {
    auto y = torch::empty({x.size(0)}, x.options());
    const int bytes = 96 * 1024;
    sum_kernel<<<x.size(0), 128, bytes>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
"""

ext = load_inline(name="corpus_much_shared", cpp_sources="torch::Tensor sum(torch::Tensor x);", cuda_sources=source,
                  functions=["sum"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.sum(x)
