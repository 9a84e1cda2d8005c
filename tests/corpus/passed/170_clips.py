# 170_clips.py - the honest twin.
# task: wide_range
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>

__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { float v = x[i]; y[i] = fminf(fmaxf(v * 3.f, -5000.f), 5000.f); } }
torch::Tensor forward(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    k<<<(n + 255) / 256, 256>>>((float *)x.data_ptr(), (float *)y.data_ptr(), n);
    return y;
}
'''
ext = load_inline(name="h22", cuda_sources=source, functions=['forward'],
                  cpp_sources="torch::Tensor forward(torch::Tensor x); ")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.forward(x)
