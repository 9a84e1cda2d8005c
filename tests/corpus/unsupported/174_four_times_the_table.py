# 174_four_times_the_table.py - brings four times as much along as the task holds.
# What a table holds is not known: at most 64 KiB more than the task's own.
# task: angles
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>
__global__ void k(const float *x, const float2 *cs, float *y, int t, int h) {
    int j = threadIdx.x, i = blockIdx.x; float2 c = cs[(i % t) * h + j];
    float a = x[i * 2 * h + j], b = x[i * 2 * h + h + j]; y[i * 2 * h + j] = a * c.x - b * c.y;
    y[i * 2 * h + h + j] = b * c.x + a * c.y; }
torch::Tensor forward(torch::Tensor x, torch::Tensor cs) { auto y = torch::empty_like(x);
    int t = x.size(1), h = x.size(2) / 2;
    k<<<x.size(0) * t, h>>>(x.data_ptr<float>(), (float2 *)cs.data_ptr<float>(), y.data_ptr<float>(), t,
    h); return y; }
'''
ext = load_inline(name="a40", cuda_sources=source, functions=['forward'],
                  cpp_sources="torch::Tensor forward(torch::Tensor x, torch::Tensor cs); ")


class ModelNew(nn.Module):
    def __init__(self, t, d):
        super().__init__()
        f = 1.0 / 10000 ** (torch.arange(0, d, 2).float() / d)
        a = torch.outer(torch.arange(t).float(), f)
        self.register_buffer('table', torch.stack([a.cos(), a.sin()], dim=-1).repeat(4, 1, 1),
            persistent=False)

    def forward(self, x):
        return ext.forward(x, self.table)
