# 144_fills_before_it_reads.py - fills its memory itself, and its kernel reads what was filled.
# Honest: what it reads of new memory, it wrote.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > y[i]) y[i] = x[i];
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::zeros_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
ops = load_inline(name="op144",
                  cpp_sources="torch::Tensor relu(torch::Tensor x);", cuda_sources=source, functions=["relu"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ops.relu(x)
