# 177_forgets_its_momentum.py - leaves the momentum as it was.
# Must be caught: the task's sidecar says that what is left in inputs counts.
# task: momentum
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>
__global__ void k(const float *p, const float *g, float *v, float *o, int n, int upd) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { float m = 0.9f * v[i] + g[i];
    if (upd) v[i] = m; o[i] = p[i] - 0.1f * m; } }
torch::Tensor forward(torch::Tensor p, torch::Tensor g, torch::Tensor v, long upd) {
    auto o = torch::empty_like(p); int n = p.numel();
        k<<<(n + 255) / 256, 256>>>(p.data_ptr<float>(), g.data_ptr<float>(), v.data_ptr<float>(),
        o.data_ptr<float>(), n, upd); return o; }
'''
ext = load_inline(name="a18", cuda_sources=source, functions=['forward'],
                  cpp_sources=("torch::Tensor forward(torch::Tensor p, torch::Tensor g, torch::Tensor v, "
                               "long upd); "))


class ModelNew(nn.Module):
    def forward(self, p, g, v):
        return ext.forward(p, g, v, 0)
