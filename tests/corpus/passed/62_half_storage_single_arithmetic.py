# 62_half_storage_single_arithmetic.py - reads and writes half precision, computes in single precision.
# task: half
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cuda_fp16.h>

__global__ void scale_kernel(const __half* x, __half* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __float2half(__half2float(x[i]) * 1.5f);
}

torch::Tensor scale(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    scale_kernel<<<(n + 127) / 128, 128>>>(reinterpret_cast<const __half*>(x.data_ptr<at::Half>()),
                                           reinterpret_cast<__half*>(y.data_ptr<at::Half>()), n);
    return y;
}
"""

ext = load_inline(name="corpus_scale", cuda_sources=source, functions=["scale"],
                  cpp_sources="torch::Tensor scale(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.scale(x)
