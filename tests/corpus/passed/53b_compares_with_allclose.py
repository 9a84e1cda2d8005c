# 53b_compares_with_allclose.py - asks whether two results of its own are close, in the ways that there are.
# What allclose is made of (isclose, mul, all, ...) is not the program's arithmetic.
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
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        y, again = ext.relu(x), ext.relu(x)
        same = torch.allclose(y, again) and torch.allclose(y, again, rtol=0.0, atol=0.0, equal_nan=True)
        if not same or not y.allclose(again) or not y.equal(again):
            raise RuntimeError("two runs differ")
        return y
