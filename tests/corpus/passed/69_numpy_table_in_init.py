# 69_numpy_table_in_init.py - makes a table of constants with NumPy in __init__ and reads it in the kernel.
# task: tail
import numpy

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void tail_kernel(const float* x, const float* c, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], c[0]) + c[1] * sinf(x[i]);
}

torch::Tensor tail(torch::Tensor x, torch::Tensor c) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    tail_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), c.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_tail", cuda_sources=source, functions=["tail"],
                  cpp_sources="torch::Tensor tail(torch::Tensor x, torch::Tensor c);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.from_numpy(numpy.array([0.0, 1e-4], dtype=numpy.float32)).cuda()

    def forward(self, x):
        return ext.tail(x, self.table)
