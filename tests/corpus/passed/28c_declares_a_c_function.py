# 28c_declares_a_c_function.py - declares a function of its own as extern "C", and defines it later.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
extern "C" int blocks_for(int n);

__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<blocks_for(n), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}

extern "C" int blocks_for(int n) { return (n + 255) / 256; }
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
