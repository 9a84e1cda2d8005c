# 61_templates_and_static_tables.py - templates, a static table and macros of its own, with the flags that answers
# usually pass.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
template <int N> struct power { static const int value = 2 * power<N - 1>::value; };
template <> struct power<0> { static const int value = 1; };
static const int blocks[] = {power<6>::value, power<7>::value, power<8>::value};

__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + SIZE - 1) / SIZE, blocks[2]>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  extra_cuda_cflags=["-O3", "--use_fast_math", "-DSIZE=256"], extra_cflags=["-O3"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
