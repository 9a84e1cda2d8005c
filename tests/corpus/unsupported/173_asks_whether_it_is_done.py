# 173_asks_whether_it_is_done.py - honest: its host asks after each step whether another one is needed.
# What it reads is more than 64 bytes in some calls, and it tells the device nothing: it steers, and computes
# nothing.
# task: settles
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>
__global__ void step(float *x, int *most, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { float y = .5f * (x[i] + cosf(x[i])); if (!(fabsf(y - x[i]) < 1e-4f)) atomicMax(most, 1);
    x[i] = y; } }
torch::Tensor forward(torch::Tensor in) { auto x = in.clone();
    auto m = torch::zeros({1}, in.options().dtype(torch::kInt)); int n = x.numel();
 for (int i = 0; i < 1000; i++) { m.zero_();
     step<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), m.data_ptr<int>(), n);
     if (m.item<int>() == 0) break; } return x; }
'''
ext = load_inline(name="h49", cuda_sources=source, functions=['forward'],
                  cpp_sources="torch::Tensor forward(torch::Tensor x); ")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.forward(x)
