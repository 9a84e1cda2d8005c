# 154_keeps_a_class_inside.py - an operator as a C++ class that the bound function makes and calls.
# Honest: what is bound is a function; classes behind it are plain C++.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

class Relu {
    int block;
public:
    explicit Relu(int block) : block(block) {}
    torch::Tensor run(torch::Tensor x) {
        auto y = torch::empty_like(x);
        int n = x.numel();
        relu_kernel<<<(n + block - 1) / block, block>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
        return y;
    }
};

torch::Tensor relu(torch::Tensor x) { return Relu(128).run(x); }
"""
ops = load_inline(name="op154",
                  cpp_sources="torch::Tensor relu(torch::Tensor x);", cuda_sources=source, functions=["relu"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ops.relu(x)
