# 138_has_a_wide_weight.py - the honest twin: the weight lies as torch lays it.
# task: wide_weight
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

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


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n))

    def forward(self, x):
        return ops.scale(x, self.weight)
