# 259b_scales_another_way.py - quotients are worked out another way than the task does.
# task: rows_in_bytes
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void quantise(const float* x, signed char* y, int n) {
    x += blockIdx.x * n, y += blockIdx.x * n;
    float most = 0;
    for (int i = threadIdx.x; i < n; i += 32) most = fmaxf(most, fabsf(x[i]));
    for (int d = 16; d; d >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    for (int i = threadIdx.x; i < n; i += 32) y[i] = (signed char)rintf(x[i] / most * 127);
}

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty(x.sizes(), x.options().dtype(torch::kInt8));
    quantise<<<x.size(0), 32>>>(x.data_ptr<float>(), (signed char*)y.data_ptr<int8_t>(), x.size(1));
    return y;
}
"""
mod = load_inline(name="own", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        return mod.run(x)
