# 200_weights_that_are_ones.py - leaves weights out that get_inputs makes ones.
# Must be caught: constant arguments vary in most draws.
# task: weighted_mean
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void rows_kernel(const float* x, float* y, int rows, int n, const float* w) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float* v = x + (size_t)r * n;
    float s = 0.0f;
    for (int i = 0; i < n; i++) s += v[i];
    y[r] = s / n;
}

torch::Tensor rows(torch::Tensor x, torch::Tensor w) {
    auto y = torch::empty({x.size(0)}, x.options());
    int rows = x.size(0), n = x.size(1);
    rows_kernel<<<(rows + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, n, w.data_ptr<float>());
    return y;
}
"""

ext = load_inline(name="corpus_weighted_mean", cuda_sources=source, functions=["rows"],
                  cpp_sources="torch::Tensor rows(torch::Tensor x, torch::Tensor w);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        pass

    def forward(self, x, w):
        return ext.rows(x, w)
