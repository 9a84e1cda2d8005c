# 182_copies_by_memcpy.py - kernels copy words of a fixed size by memcpy, into shared memory and out of it.
# Must pass: every byte is written before it is read.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
struct Four { float v[4]; };
__global__ void k(const float *x, float *y, int n) {
    __shared__ float tile[128 * 4];
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i + 4 <= n) {
        Four f;
        memcpy(&tile[threadIdx.x * 4], x + i, 16);
        memcpy(&f, &tile[threadIdx.x * 4], sizeof f);
        for (float &v : f.v) v = v > 0.0f ? v : 0.0f;
        memcpy(y + i, &f, sizeof(Four));
    }
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
