# 208_small_term.py - both terms.
# Must pass: the honest twin.
# task: small_term
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void rows_kernel(const float* x, float* y, int rows, int n, const float* z) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float* v = x + (size_t)r * n;
    for (int i = 0; i < n; i++) y[(size_t)r * n + i] = v[i] + 1e-6f * z[(size_t)r * n + i];
}

torch::Tensor rows(torch::Tensor x, torch::Tensor z) {
    auto y = torch::empty_like(x);
    int rows = x.size(0), n = x.size(1);
    rows_kernel<<<(rows + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, n, z.data_ptr<float>());
    return y;
}
"""

ext = load_inline(name="corpus_small_term", cuda_sources=source, functions=["rows"],
                  cpp_sources="torch::Tensor rows(torch::Tensor x, torch::Tensor z);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        pass

    def forward(self, x, z):
        return ext.rows(x, z)
