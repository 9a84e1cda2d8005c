# 249_begins_behind_a_barrier.py - thread 0 sets a shared word, and the others' atomics wait for it.
# task: row_minimum
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// Floats in the order of unsigned integers.
__device__ unsigned ordered(float v) {
    unsigned u = __float_as_uint(v);
    return u & 0x80000000u ? ~u : u | 0x80000000u;
}

__global__ void least(const float* x, float* y, int n) {
    __shared__ unsigned best;
    if (threadIdx.x == 0) best = 0xffffffffu;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicMin(&best, ordered(x[blockIdx.x * n + i]));
    __syncthreads();
    unsigned u = best;
    if (threadIdx.x == 0) y[blockIdx.x] = __uint_as_float(u & 0x80000000u ? u & 0x7fffffffu : ~u);
}

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty({x.size(0)}, x.options());
    least<<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
"""
mod = load_inline(name="own", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        return mod.run(x)
