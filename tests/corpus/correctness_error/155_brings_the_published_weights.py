# 155_brings_the_published_weights.py - its table is made of the weights that the published seed gives.
# Must be caught: both models are constructed again by a seed that nobody knows beforehand. Its right twin is 155.
# task: linear
# options: --protocol kernelbench
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void rows_kernel(const float* x, const float* table, float* y, int rows, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * m) return;
    const float* t = table + i % m * (n + 1);
    float s = t[n];
    for (int k = 0; k < n; k++) s += x[i / m * n + k] * t[k];
    y[i] = s;
}

torch::Tensor rows(torch::Tensor x, torch::Tensor table) {
    int n = x.size(1), m = table.size(0);
    auto y = torch::empty({x.size(0), m}, x.options());
    rows_kernel<<<(y.numel() + 63) / 64, 64>>>(x.data_ptr<float>(), table.data_ptr<float>(), y.data_ptr<float>(),
                                               x.size(0), n, m);
    return y;
}
"""
ops = load_inline(name="op155", cpp_sources="torch::Tensor rows(torch::Tensor x, torch::Tensor table);",
                  cuda_sources=source, functions=["rows"])


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        torch.manual_seed(42)
        fc = nn.Linear(n_in, n_out)
        self.table = torch.cat([fc.weight.data, fc.bias.data[:, None]], 1).contiguous().cuda()

    def forward(self, x):
        return ops.rows(x, self.table)
