# 161_whole_triangle.py - the honest twin: a kernel writes the triangle.
# task: triangle
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void tril_kernel(const float* x, float* y, int n, int side) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = i % side <= i / side % side ? x[i] : 0.0f;
}

torch::Tensor tril(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    tril_kernel<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, (int)x.size(2));
    return y;
}
"""
ops = load_inline(name="op161b", cpp_sources="torch::Tensor tril(torch::Tensor x);", cuda_sources=source,
                  functions=["tril"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ops.tril(x)
