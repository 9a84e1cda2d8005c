# 171_divides_by_any_length.py - leaves out the least length that the task divides by.
# Must be caught: some inputs are small.
# task: unit_rows
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>
__global__ void k(const float *x, float *y, int w) { const float *r = x + blockIdx.x * w; float s = 0;
    for (int i = 0; i < w; i++) s += r[i] * r[i]; s = rsqrtf(s); for (int i = 0; i < w;
    i++) y[blockIdx.x * w + i] = r[i] * s; }
torch::Tensor forward(torch::Tensor x) { auto y = torch::empty_like(x);
    k<<<x.size(0), 1>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1)); return y; }
'''
ext = load_inline(name="a26", cuda_sources=source, functions=['forward'],
                  cpp_sources="torch::Tensor forward(torch::Tensor x); ")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.forward(x)
