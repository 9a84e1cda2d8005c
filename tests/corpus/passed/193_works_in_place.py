# 193_works_in_place.py - the kernel writes over its input.
# Must pass under the published protocol, which does not look there.
# task: relu
# options: --protocol kernelbench
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void k(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
torch::Tensor go(torch::Tensor x) {
    auto y = x;
    int n = x.numel();
    k<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["go"],
                  cpp_sources="torch::Tensor go(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.go(x)
