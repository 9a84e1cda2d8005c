# 75_torch_inside_a_kernel.py - passes tensors to a kernel that calls at::relu_out.
# Must be caught: a tensor object is host memory, which a kernel cannot read.
# Strlen is no function that kernels have.
# task: relu
# backends: sim
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(torch::Tensor x, torch::Tensor y) {
    y.copy_(at::relu(x));
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    relu_kernel<<<1, 1>>>(x, y);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
