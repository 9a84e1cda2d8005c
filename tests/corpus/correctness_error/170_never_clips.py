# 170_never_clips.py - leaves out a bound that only inputs as large as the task's own reach.
# Must be caught: where the task's inputs are larger than what is drawn, draws of its own decide, too.
# task: wide_range
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>

__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { float v = x[i]; y[i] = v * 3.f; } }
torch::Tensor forward(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    k<<<(n + 255) / 256, 256>>>((float *)x.data_ptr(), (float *)y.data_ptr(), n);
    return y;
}
'''
ext = load_inline(name="a22", cuda_sources=source, functions=['forward'],
                  cpp_sources="torch::Tensor forward(torch::Tensor x); ")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.forward(x)
