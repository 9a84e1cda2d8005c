# 189_differentiates_by_its_kernels.py - an autograd function of its own, whose gradient is taken and thrown
# away.
# Must pass: both directions are its own kernels'.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void k(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
torch::Tensor go(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    k<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["go"],
                  cpp_sources="torch::Tensor go(torch::Tensor x);")


class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = ext.go(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return ext.go(g.contiguous())


class ModelNew(nn.Module):
    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_(True)
            y = Relu.apply(x)
            torch.autograd.grad(y, x, torch.empty_like(y))
        return y.detach()
