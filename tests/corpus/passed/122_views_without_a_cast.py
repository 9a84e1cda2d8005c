# 122_views_without_a_cast.py - hands its kernel the input's bits by a view; casts go from a tensor's own type.
# task: bits
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void bits_kernel(const int* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = (float)x[i];
}

__global__ void bits_exactly(const int* x, double* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = (double)x[i];
}

torch::Tensor bits(torch::Tensor x) {
    auto y = torch::empty(x.sizes(), x.options().dtype(torch::kFloat64));
    int n = x.numel();
    bits_exactly<<<(n + 255) / 256, 256>>>(x.data_ptr<int>(), y.data_ptr<double>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["bits"],
                  cpp_sources="torch::Tensor bits(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        wide = x.to(torch.float64).to(torch.float32)
        return ext.bits(wide.view(torch.int32))
