# 63_forked_child_computes.py - forks; the child, whose operators nobody counts, computes into memory that both share.
# Must be caught: a candidate may have threads but no further processes.
# task: relu
import os

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void copy_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

torch::Tensor same(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    copy_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_same", cuda_sources=source, functions=["same"],
                  cpp_sources="torch::Tensor same(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.same(x)
        pid = os.fork()
        if pid == 0:
            torch.relu(x, out=y)
            os._exit(0)
        os.waitpid(pid, 0)
        return y
