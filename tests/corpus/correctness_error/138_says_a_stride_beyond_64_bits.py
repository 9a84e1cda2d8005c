# 138_says_a_stride_beyond_64_bits.py - says of its weight that it is double and lies 2^40 elements apart: in bytes
# that wraps around to eight.
# Must be caught: the judge would write its values all over its own memory.
# task: wide_weight
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline
import front_role

source = r"""
__global__ void scale_kernel(const float* x, const float* w, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * tanhf(w[i]);
}

torch::Tensor scale(torch::Tensor x, torch::Tensor w) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    scale_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
ops = load_inline(name="op138", cpp_sources="torch::Tensor scale(torch::Tensor x, torch::Tensor w);",
                  cuda_sources=source, functions=["scale"])

told = front_role.Descriptions.tensor


def lies(self, t):
    d = told(self, t)
    return dict(d, dtype="float64", strides=[1 << 40]) if t.numel() > 2 << 20 else d


front_role.Descriptions.tensor = lies


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n))

    def forward(self, x):
        return ops.scale(x, self.weight)
