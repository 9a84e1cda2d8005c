# 209_index_of_largest.py - the first of the largest.
# Must pass: the honest twin.
# task: index_of_largest
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void rows_kernel(const float* x, int64_t* y, int rows, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float* v = x + (size_t)r * n;
    float most = -INFINITY;
    int at = 0;
    for (int i = 0; i < n; i++) {
        if (v[i] > most) most = v[i], at = i;
    }
    y[r] = at;
}

torch::Tensor rows(torch::Tensor x) {
    auto y = torch::empty({x.size(0)}, x.options().dtype(torch::kLong));
    int rows = x.size(0), n = x.size(1);
    rows_kernel<<<(rows + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<int64_t>(), rows, n);
    return y;
}
"""

ext = load_inline(name="corpus_index_of_largest", cuda_sources=source, functions=["rows"],
                  cpp_sources="torch::Tensor rows(torch::Tensor x);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        pass

    def forward(self, x):
        return ext.rows(x)
