# 92_ctypes_for_a_table.py - lays out a table with ctypes and asks libc for its own process id.
# task: relu
import ctypes

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class Launch(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_int), ("block", ctypes.c_int)]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.launch = Launch(4, 256)
        self.pid = ctypes.CDLL(None).getpid()

    def forward(self, x):
        return ext.relu(x)
