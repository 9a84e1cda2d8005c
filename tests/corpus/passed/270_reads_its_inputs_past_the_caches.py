# 270_reads_its_inputs_past_the_caches.py - __ldg of its input, plain loads of its own sums.
# task: running_sums
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// Sums by doubling: in place, thread by thread, between barriers.
__global__ void running_sums(const float* x, float* y, int n) {
    float* row = y + blockIdx.x * n;
    int t = threadIdx.x;
    row[t] = __ldg(x + blockIdx.x * n + t);
    __syncthreads();
    for (int d = 1; d < n; d *= 2) {
        float left = t >= d ? row[t - d] : 0.0f, own = row[t];
        __syncthreads();
        row[t] = left + own;
        __syncthreads();
    }
}

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.size(1);
    running_sums<<<x.size(0), n>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
mod = load_inline(name="own", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        return mod.run(x)
