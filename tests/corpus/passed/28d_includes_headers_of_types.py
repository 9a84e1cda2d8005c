# 28d_includes_headers_of_types.py - includes headers of CUDA that bring types and device functions only.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cuda_fp16.h>
#include <math_constants.h>
#include <vector_types.h>

__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(__half2float(__float2half(0.0f)), x[i]);
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
