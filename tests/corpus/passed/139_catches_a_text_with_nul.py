# 139_catches_a_text_with_nul.py - a parser's error with NUL and half of a surrogate pair is raised and caught.
# Honest: what a program does with its own errors is its own matter; its kernel does the work.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
ops = load_inline(name="op139",
                  cpp_sources="torch::Tensor relu(torch::Tensor x);", cuda_sources=source, functions=["relu"])


class ModelNew(nn.Module):
    def forward(self, x):
        try:
            raise ValueError("bad header " + b"\x00\xff".decode("utf-8", "surrogateescape"))
        except ValueError:
            return ops.relu(x)
