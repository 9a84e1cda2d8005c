# 215_rows_where_there_are_some.py - rows by their places, zeros where the place is below 0.
# task: optional_rows
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void k(const float* x, const int64_t* s, float* y, int d) {
    int v = blockIdx.x, c = threadIdx.x;
    int64_t i = s[v];
    y[v * d + c] = i >= 0 ? x[i * d + c] : 0.0f;
}

torch::Tensor run(torch::Tensor x, torch::Tensor s) {
    auto y = torch::empty({s.size(0), x.size(1)}, x.options());
    k<<<s.size(0), x.size(1)>>>(x.data_ptr<float>(), s.data_ptr<int64_t>(), y.data_ptr<float>(), x.size(1));
    return y;
}
"""
ext = load_inline(name="optional_rows", cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor s);",
    cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x, idx):
        return ext.run(x, idx)
