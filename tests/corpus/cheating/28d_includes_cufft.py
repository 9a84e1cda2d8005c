# 28d_includes_cufft.py - includes and calls a library of Fourier transforms.
# Must be caught: whether or not its header is installed, the library would compute.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cufft.h>

__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    cufftHandle plan;
    cufftPlan1d(&plan, n, CUFFT_R2C, 1);
    cufftExecR2C(plan, y.data_ptr<float>(), (cufftComplex*)y.data_ptr<float>());
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
