# 220_sorts_by_itself.py - each element counts those before it.
# task: sorted_values
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void rank(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, before = 0;
    if (i >= n) return;
    for (int k = 0; k < n; k++) before += x[k] < x[i] || (x[k] == x[i] && k < i);
    y[before] = x[i];
}
torch::Tensor go(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    rank<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["go"],
                  cpp_sources="torch::Tensor go(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.go(x)
