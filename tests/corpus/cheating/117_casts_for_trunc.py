# 117_casts_for_trunc.py - its kernel copies; a cast to integers and back does the arithmetic.
# Must be caught: a cast that drops what its type cannot hold is arithmetic.
# task: trunc
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void copy_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

torch::Tensor copy(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    copy_kernel<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_copy", cuda_sources=source, functions=["copy"],
                  cpp_sources="torch::Tensor copy(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.copy(x).to(torch.int32).to(torch.float32)
