# 73_constants_as_kernel_arguments.py - passes constants and sizes to its kernel.
# task: tail
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void tail_kernel(const float* x, float* y, int n, float zero, float scale) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], zero) + scale * sinf(x[i]);
}

torch::Tensor tail(torch::Tensor x, double scale) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    for (int at = 0; at < n; at += 64)
        tail_kernel<<<1, 64>>>(x.data_ptr<float>() + at, y.data_ptr<float>() + at, n - at, 0.0f, scale);
    return y;
}
"""

ext = load_inline(name="corpus_tail", cuda_sources=source, functions=["tail"],
                  cpp_sources="torch::Tensor tail(torch::Tensor x, double scale);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.tail(x, 1e-4)
