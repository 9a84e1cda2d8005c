# 172_adds_nothing.py - as its twin, and leaves the addend out.
# Must be caught: the number is the same in all draws, the inputs are not.
# task: scaled
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>
__global__ void k(const float *x, float *y, float s, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] * s; }
torch::Tensor forward(torch::Tensor x, double s) { auto y = torch::empty_like(x); int n = x.numel();
    k<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), (float)s, n); return y; }
'''
ext = load_inline(name="a32", cuda_sources=source, functions=['forward'],
                  cpp_sources="torch::Tensor forward(torch::Tensor x, double s); ")


class ModelNew(nn.Module):
    def forward(self, x, s):
        return ext.forward(x, s)
