# 205_slopes_below_one.py - the larger of x and w x: right for slopes up to 1.
# Must be caught: a second set of parameters has slopes above 1 and below 0.
# task: channel_prelu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void rows_kernel(const float* x, float* y, int rows, int n, const float* w) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float* v = x + (size_t)r * n;
    for (int i = 0; i < n; i++) {
        float s = w[i] * v[i];
        y[(size_t)r * n + i] = fmaxf(v[i], s);
    }
}

torch::Tensor rows(torch::Tensor x, torch::Tensor w) {
    auto y = torch::empty_like(x);
    int rows = x.size(0), n = x.size(1);
    rows_kernel<<<(rows + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, n, w.data_ptr<float>());
    return y;
}
"""

ext = load_inline(name="corpus_channel_prelu", cuda_sources=source, functions=["rows"],
                  cpp_sources="torch::Tensor rows(torch::Tensor x, torch::Tensor w);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((40,), 0.25))

    def forward(self, x):
        return ext.rows(x, self.w)
