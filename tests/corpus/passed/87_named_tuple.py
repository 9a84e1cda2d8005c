# 87_named_tuple.py - returns a namedtuple.
# task: pair
import collections

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}

__global__ void next_kernel(const int64_t* x, int64_t* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + 1;
}

std::vector<torch::Tensor> both(torch::Tensor x, torch::Tensor k) {
    auto y = torch::empty_like(x), z = torch::empty_like(k);
    relu_kernel<<<(x.numel() + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    next_kernel<<<(k.numel() + 63) / 64, 64>>>(k.data_ptr<int64_t>(), z.data_ptr<int64_t>(), k.numel());
    return {y, z};
}
"""

ext = load_inline(name="corpus_both", cuda_sources=source, functions=["both"],
                  cpp_sources="std::vector<torch::Tensor> both(torch::Tensor x, torch::Tensor k);")

Both = collections.namedtuple("Both", "y following")


class ModelNew(nn.Module):
    def forward(self, x, idx):
        return Both(*ext.both(x, idx))
