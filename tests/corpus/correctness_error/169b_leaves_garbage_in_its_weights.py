# 169b_leaves_garbage_in_its_weights.py - works on a copy and fills the weights with another number.
# Must be caught: as 169.
# task: packs
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>
__global__ void ap(const float *x, const float *w, float *y, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] * expf(w[i % m]); }
__global__ void junk(float *w, int m) { if (threadIdx.x < m) w[threadIdx.x] = 7.f; }
torch::Tensor forward(torch::Tensor x, torch::Tensor w, torch::Tensor c, long first) {
    auto y = torch::empty_like(x); int n = x.numel();
    ap<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), c.data_ptr<float>(), y.data_ptr<float>(), n, w.numel());
    junk<<<1, 128>>>(w.data_ptr<float>(), w.numel()); return y;
}
'''
ext = load_inline(name="a27", cuda_sources=source, functions=['forward'],
                  cpp_sources=("torch::Tensor forward(torch::Tensor x, torch::Tensor w, torch::Tensor c, "
                               "long first); "))


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = nn.Parameter(torch.randn(n))
        self.c = None

    def forward(self, x):
        if self.c is None:
            self.c = self.w.detach().clone()
        return ext.forward(x, self.w.data, self.c, 0)
