# 72_constant_memory.py - sends two constants to constant memory before the launch.
# task: tail
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__constant__ float table[2];

__global__ void tail_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], table[0]) + table[1] * sinf(x[i]);
}

torch::Tensor tail(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    float host[2] = {0.0f, 1e-4f};
    cudaMemcpyToSymbol(table, host, sizeof host);
    tail_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_tail", cuda_sources=source, functions=["tail"],
                  cpp_sources="torch::Tensor tail(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.tail(x)
