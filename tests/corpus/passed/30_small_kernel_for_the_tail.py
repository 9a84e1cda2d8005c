# 30_small_kernel_for_the_tail.py - one kernel for whole blocks of 256, another for the tail.
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
    int whole = n / 256 * 256;
    if (whole) relu_kernel<<<whole / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), whole);
    if (n > whole)
        relu_kernel<<<1, 256>>>(x.data_ptr<float>() + whole, y.data_ptr<float>() + whole, n - whole);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
