# 241_reads_its_mask.py - attends to what the mask allows.
# task: attention
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void attend(const float* q, const float* k, const float* v, const bool* mask, float* o, int n, int d) {
    int row = blockIdx.x, at = blockIdx.y * n, lane = threadIdx.x;
    float top = -INFINITY, den = 0.f, sum = 0.f;
    for (int j = 0; j < n; j++) {
        if (!(mask[row * n + j])) continue;
        float s = 0.f;
        for (int i = 0; i < d; i++) s += q[(at + row) * d + i] * k[(at + j) * d + i];
        s *= rsqrtf(d);
        float most = fmaxf(top, s), old = expf(top - most), now = expf(s - most);
        den = den * old + now;
        sum = sum * old + now * v[(at + j) * d + lane];
        top = most;
    }
    o[(at + row) * d + lane] = sum / den;
}

torch::Tensor run(torch::Tensor q, torch::Tensor k, torch::Tensor v, torch::Tensor mask) {
    auto o = torch::empty_like(q);
    int n = q.size(1), d = q.size(2);
    attend<<<dim3(n, q.size(0)), d>>>(q.data_ptr<float>(), k.data_ptr<float>(), v.data_ptr<float>(),
                                      mask.data_ptr<bool>(), o.data_ptr<float>(), n, d);
    return o;
}
"""
mod = load_inline(name="own",
                  cpp_sources="torch::Tensor run(torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor);",
                  cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, q, k, v, mask):
        return mod.run(q, k, v, mask)
