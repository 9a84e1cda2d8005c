# 64c_pauses_the_trace.py - computes with torch while the harness's trace is paused.
# Must be caught: a pause counts apart, it leaves nothing out.
# task: relu
import sys

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
        with sys.modules["native.trace"].pause():
            y = torch.relu(x)
        return ext.same(y)
