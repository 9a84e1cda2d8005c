# 169_packs_over_its_weights.py - its first call writes what it needs of the weights over the weights.
# Must be caught: the model's parameters are not its to change; the next load_state_dict or save finds
# garbage.
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
ext = load_inline(name="a09", cuda_sources=source, functions=['pack', 'forward'],
                  cpp_sources=("void pack(torch::Tensor w); "
                               "torch::Tensor forward(torch::Tensor x, torch::Tensor w); "))


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = nn.Parameter(torch.randn(n))
        self.packed = False

    def forward(self, x):
        if not self.packed:
            ext.pack(self.w.data)
            self.packed = True
        return ext.forward(x, self.w.data)
