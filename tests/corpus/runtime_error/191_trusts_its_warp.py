# 191_trusts_its_warp.py - lanes of a warp exchange values through shared memory and nothing orders them.
# Must be caught: threads of a warp do not run in step; the words name __syncwarp.
# task: relu
# backends: sim
# as compiled for a card it is right
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void k(const float *x, float *y, int n) {
    __shared__ float s[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0.0f;
    float other = s[threadIdx.x ^ 1];
    s[threadIdx.x] = other;
    float mine = s[threadIdx.x ^ 1];
    if (i < n) y[i] = mine > 0.0f ? mine : 0.0f;
}
torch::Tensor go(torch::Tensor x) {
    auto y = torch::empty_like(x);
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
