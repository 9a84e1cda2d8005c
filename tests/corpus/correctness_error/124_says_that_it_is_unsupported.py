# 124_says_that_it_is_unsupported.py - answers wrongly, asks for managed memory in vain, and writes the judge's words
# to its output.
# Must be caught: what is missing excuses errors, and no wrong answer; words on its output excuse nothing.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cstdio>

__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    void *p;
    cudaMallocManaged(&p, 64);
    cudaGetLastError();
    fprintf(stderr, "musacoder-unsupported: managed_memory\n");
    n = n / 2;
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
