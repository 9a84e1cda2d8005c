# 264_any_number_of_rows.py - any number of rows; a macro pastes a kernel's name of parts that begin with digits.
# task: rows_by_chance
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

#define KERNEL(NAME) \
    __global__ void rows_##NAME##2d_kernel(const float* x, float* y, int n) { \
        int i = blockIdx.x * blockDim.x + threadIdx.x; \
        if (i < n) y[i] = fmaxf(x[i], 0.f) + 1.f; \
    } \
    void launch_##NAME(const float* x, float* y, int n) { \
        if (n) rows_##NAME##2d_kernel<<<(n + 63) / 64, 64>>>(x, y, n); \
    }
KERNEL(relu)

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    launch_relu(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""
mod = load_inline(name="own", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        return mod.run(x)
