# 167_rounds_nothing.py - gives its input back where the task rounds to quarters.
# Must be caught: only what lies at a step may go either way; all other values decide.
# task: steps_bf16
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>

__global__ void k(const __nv_bfloat16 *x, __nv_bfloat16 *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { __nv_bfloat16 v = x[i]; y[i] = v; } }
torch::Tensor forward(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    k<<<(n + 255) / 256, 256>>>((__nv_bfloat16 *)x.data_ptr(), (__nv_bfloat16 *)y.data_ptr(), n);
    return y;
}
'''
ext = load_inline(name="a04", cuda_sources=source, functions=['forward'],
                  cpp_sources="torch::Tensor forward(torch::Tensor x); ")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.forward(x)
