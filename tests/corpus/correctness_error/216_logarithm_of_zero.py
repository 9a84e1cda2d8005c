# 216_logarithm_of_zero.py - 0 log 0 is NaN: no row of get_inputs holds a 0.
# task: divergence
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void k(const float* p, const float* q, float* y, int n, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0;
    for (int j = 0; j < d; j++) {
        float a = p[i * d + j];
        s += a * (logf(a) - logf(q[i * d + j]));
    }
    y[i] = s;
}

torch::Tensor run(torch::Tensor p, torch::Tensor q) {
    auto y = torch::empty({p.size(0)}, p.options());
    k<<<(p.size(0) + 31) / 32, 32>>>(p.data_ptr<float>(), q.data_ptr<float>(), y.data_ptr<float>(), p.size(0),
        p.size(1));
    return y;
}
"""
ext = load_inline(name="divergence", cpp_sources="torch::Tensor run(torch::Tensor p, torch::Tensor q);",
    cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, p, q):
        return ext.run(p, q)
