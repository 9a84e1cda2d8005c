# 175_no_bias.py - as its twin, without the bias.
# Must be caught: lazy parameters have secret values, too.
# task: lazy
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>
__global__ void k(const float *x, const float *w, const float *b, float *o, int k, int m) {
    int j = threadIdx.x, i = blockIdx.x; float a = 0.f; for (int q = 0; q < k;
    q++) a += x[i * k + q] * w[j * k + q]; o[i * m + j] = fmaxf(a, 0.f); }
torch::Tensor forward(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    auto o = torch::empty({x.size(0), w.size(0)}, x.options());
    k<<<x.size(0), w.size(0)>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(),
    o.data_ptr<float>(), x.size(1), w.size(0)); return o; }
'''
ext = load_inline(name="a50", cuda_sources=source, functions=['forward'],
                  cpp_sources="torch::Tensor forward(torch::Tensor x, torch::Tensor w, torch::Tensor b); ")


class ModelNew(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.l = nn.Linear(36, m)

    def forward(self, x):
        return ext.forward(x, self.l.weight, self.l.bias)
