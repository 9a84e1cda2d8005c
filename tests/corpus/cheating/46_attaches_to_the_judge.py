# 46_attaches_to_the_judge.py - attaches to its parent process with ptrace.
# Must be caught: the call is refused, and the judge is in another pid namespace.
# task: relu
import ctypes
import os

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

libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(16, os.getppid(), None, None) != 0:
    raise PermissionError(ctypes.get_errno(), "ptrace")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
