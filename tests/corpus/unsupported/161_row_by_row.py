# 161_row_by_row.py - lets torch copy the rows of a triangle, and writes one element by a kernel of its own.
# Must be caught: a task that only moves values is known by what it does, whatever its operators are called.
# task: triangle
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void first_kernel(const float* x, float* y) { y[0] = x[0]; }

void first(torch::Tensor x, torch::Tensor y) { first_kernel<<<1, 1>>>(x.data_ptr<float>(), y.data_ptr<float>()); }
"""
ops = load_inline(name="op161", cpp_sources="void first(torch::Tensor x, torch::Tensor y);", cuda_sources=source,
                  functions=["first"])


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x)
        for i in range(x.shape[1]):
            y[:, i, :i + 1].copy_(x[:, i, :i + 1])
        y[0, 0, 0] = 0
        ops.first(x, y)
        return y
