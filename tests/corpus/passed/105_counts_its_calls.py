# 105_counts_its_calls.py - counts its calls, and takes another kernel of its own from some call on.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void first_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

__global__ void later_kernel(const float* x, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = fmaxf(x[i], 0.0f);
}

torch::Tensor relu(torch::Tensor x, bool later) {
    auto y = torch::empty_like(x);
    int n = x.numel(), blocks = (n + 255) / 256;
    if (later)
        later_kernel<<<blocks < 132 ? blocks : 132, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    else
        first_kernel<<<blocks, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_relu_twice", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x, bool later);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return ext.relu(x, self.calls >= 60)
