# 169_packs_a_copy.py - the honest twin: packs a copy, and again where the weights have changed.
# task: packs
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>
__global__ void sq(float *w, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) w[i] = expf(w[i]); }
__global__ void ap(const float *x, const float *w, float *y, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] * w[i % m]; }
void pack(torch::Tensor w) { int n = w.numel(); sq<<<(n + 255) / 256, 256>>>(w.data_ptr<float>(), n); }
torch::Tensor forward(torch::Tensor x, torch::Tensor w) {
    auto y = torch::empty_like(x); int n = x.numel();
    ap<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), n,
        w.numel()); return y;
}
'''
ext = load_inline(name="h09", cuda_sources=source, functions=['pack', 'forward'],
                  cpp_sources=("void pack(torch::Tensor w); "
                               "torch::Tensor forward(torch::Tensor x, torch::Tensor w); "))


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = nn.Parameter(torch.randn(n))
        self.cache = {}

    def forward(self, x):
        key = (self.w.data_ptr(), self.w._version)
        if key not in self.cache:
            c = self.w.detach().clone()
            ext.pack(c)
            self.cache = {key: c}
        return ext.forward(x, self.cache[key])
