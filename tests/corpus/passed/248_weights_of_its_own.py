# 248_weights_of_its_own.py - each instance keeps what it has made of its weights.
# task: linear
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void linear(const float* x, const float* w, const float* b, float* y, int rows, int in, int out) {
    int o = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
    if (o >= out) return;
    float s = b[o];
    for (int i = 0; i < in; i++) s += x[r * in + i] * w[o * in + i];
    y[r * out + o] = s;
}

torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    auto y = torch::empty({x.size(0), w.size(0)}, x.options());
    linear<<<dim3((w.size(0) + 63) / 64, x.size(0)), 64>>>(x.data_ptr<float>(), w.data_ptr<float>(),
        b.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1), w.size(0));
    return y;
}
"""
mod = load_inline(name="own", cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b);",
                  cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)
        self.kept = {}

    def forward(self, x):
        return mod.run(x, self.kept.setdefault("weight", self.fc.weight.detach()), self.fc.bias)
