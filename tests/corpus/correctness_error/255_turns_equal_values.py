# 255_turns_equal_values.py - equal values come in the opposite order.
# task: stable_order
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void order(const float* x, long* y, int n) {
    x += blockIdx.x * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        int place = 0;
        for (int k = 0; k < n; k++) place += x[k] < x[i] || (x[k] == x[i] && k > i);
        y[blockIdx.x * n + place] = i;
    }
}

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty({x.size(0), x.size(1)}, x.options().dtype(torch::kLong));
    order<<<x.size(0), 32>>>(x.data_ptr<float>(), (long*)y.data_ptr<int64_t>(), x.size(1));
    return y;
}
"""
mod = load_inline(name="own", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        return mod.run(x)
