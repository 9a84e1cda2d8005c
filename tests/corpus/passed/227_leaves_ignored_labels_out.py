# 227_leaves_ignored_labels_out.py - labels of -100 have no loss.
# task: loss_without_some_labels
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void loss(const float* x, const int64_t* t, float* y, int n, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float m = -INFINITY, s = 0;
    for (int j = 0; j < d; j++) m = fmaxf(m, x[i * d + j]);
    for (int j = 0; j < d; j++) s += expf(x[i * d + j] - m);
    y[i] = t[i] == -100 ? 0.0f : logf(s) + m - x[i * d + t[i]];
}

torch::Tensor run(torch::Tensor x, torch::Tensor t) {
    auto y = torch::empty({x.size(0)}, x.options());
    int n = x.size(0);
    loss<<<(n + 31) / 32, 32>>>(x.data_ptr<float>(), t.data_ptr<int64_t>(), y.data_ptr<float>(), n, x.size(1));
    return y;
}
"""
ext = load_inline(name="loss_without_some_labels",
                  cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor t);",
                  cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x, t):
        return ext.run(x, t)
