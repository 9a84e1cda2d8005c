# 117_truncates_in_its_kernel.py - the same answer by its own kernel.
# task: trunc
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void trunc_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = truncf(x[i]);
}

torch::Tensor truncate_all(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    trunc_kernel<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_truncate_all", cuda_sources=source, functions=["truncate_all"],
                  cpp_sources="torch::Tensor truncate_all(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.truncate_all(x)
