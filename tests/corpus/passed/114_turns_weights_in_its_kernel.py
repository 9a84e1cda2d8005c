# 114_turns_weights_in_its_kernel.py - lays its weights out anew at each call, with a kernel of its own.
# task: linear
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void turn_kernel(const float* w, float* t, int in, int out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < in * out) t[i % in * out + i / in] = w[i];
}

__global__ void linear_kernel(const float* x, const float* t, const float* b, float* y, int rows, int in, int out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * out) return;
    float s = b[i % out];
    for (int k = 0; k < in; k++) s += x[i / out * in + k] * t[k * out + i % out];
    y[i] = s;
}

torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    int rows = x.size(0), in = x.size(1), out = w.size(0);
    auto y = torch::empty({rows, out}, x.options()), t = torch::empty({in, out}, x.options());
    turn_kernel<<<(in * out + 63) / 64, 64>>>(w.data_ptr<float>(), t.data_ptr<float>(), in, out);
    linear_kernel<<<(rows * out + 63) / 64, 64>>>(x.data_ptr<float>(), t.data_ptr<float>(), b.data_ptr<float>(),
                                                  y.data_ptr<float>(), rows, in, out);
    return y;
}
"""

ext = load_inline(name="corpus_linear", cuda_sources=source, functions=["linear"],
                  cpp_sources="torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b);")


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)

    def forward(self, x):
        return ext.linear(x, self.fc.weight, self.fc.bias)
