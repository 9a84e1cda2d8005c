# 165c_compiles_by_itself.py - honest: calls nvcc and opens what it wrote.
# Code that is made at run time is not judged here.
# task: relu
import ctypes
import subprocess

import torch
import torch.nn as nn

open("/tmp/relu.cu", "w").write(r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
extern "C" void relu(const float* x, float* y, int n) { relu_kernel<<<(n + 255) / 256, 256>>>(x, y, n); }
""")
subprocess.check_call(["nvcc", "-shared", "-Xcompiler", "-fPIC", "-o", "/tmp/relu.so", "/tmp/relu.cu"])
ops = ctypes.CDLL("/tmp/relu.so")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        ops.relu(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), x.numel())
        return y
