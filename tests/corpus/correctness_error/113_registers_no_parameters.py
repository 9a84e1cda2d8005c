# 113_registers_no_parameters.py - keeps its weights where nobody can set them, and trusts that the seed is the same.
# Must be caught: what cannot take the model's weights replaces nothing.
# task: linear
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void linear_kernel(const float* x, const float* w, const float* b, float* y, int rows, int in, int out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * out) return;
    float s = b[i % out];
    for (int k = 0; k < in; k++) s += x[i / out * in + k] * w[i % out * in + k];
    y[i] = s;
}

torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    int rows = x.size(0), in = x.size(1), out = w.size(0);
    auto y = torch::empty({rows, out}, x.options());
    linear_kernel<<<(rows * out + 63) / 64, 64>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(),
                                                  y.data_ptr<float>(), rows, in, out);
    return y;
}
"""

ext = load_inline(name="corpus_linear", cuda_sources=source, functions=["linear"],
                  cpp_sources="torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b);")


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        layer = nn.Linear(n_in, n_out)
        self.weights = [layer.weight.detach().cuda(), layer.bias.detach().cuda()]

    def forward(self, x):
        return ext.linear(x, *self.weights)
