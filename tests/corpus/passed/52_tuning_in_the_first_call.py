# 52_tuning_in_the_first_call.py - tries three launch configurations in its first call and keeps one.
# Legitimate: cold and warm times are reported apart.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

torch::Tensor relu(torch::Tensor x, int64_t b) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + b - 1) / b, b>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x, int64_t b);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = None

    def forward(self, x):
        if self.block is None:
            for b in (64, 128, 256):
                ext.relu(x, b)
            self.block = 128
        return ext.relu(x, self.block)
