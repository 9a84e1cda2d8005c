# 98_registers_its_own_operator.py - registers its kernel under a name of its own.
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


library = torch.library.Library("corpus98", "FRAGMENT")
library.define("relu(Tensor x) -> Tensor")
library.impl("relu", lambda x: ext.relu(x), "CUDA")


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.corpus98.relu(x)
