# 250_adds_without_a_lock.py - blocks add to the same words, which are volatile and guarded by nothing.
# task: rowsum
# backends: sim
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// Each block adds its part of every row to the rows' sums.
__global__ void add(const float* x, volatile float* sum, int* lock, int rows, int n) {
    int from = n * blockIdx.x / gridDim.x, to = n * (blockIdx.x + 1) / gridDim.x;
    for (int r = 0; r < rows; r++) {
        float s = 0;
        for (int i = from; i < to; i++) s += x[r * n + i];
        sum[r] = sum[r] + s;
    }
    __threadfence();
}

torch::Tensor run(torch::Tensor x) {
    auto sum = torch::zeros({x.size(0)}, x.options()), lock = torch::zeros({1}, x.options().dtype(torch::kInt));
    add<<<3, 1>>>(x.data_ptr<float>(), sum.data_ptr<float>(), lock.data_ptr<int>(), x.size(0), x.size(1));
    return sum;
}
"""
mod = load_inline(name="own", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        return mod.run(x)
