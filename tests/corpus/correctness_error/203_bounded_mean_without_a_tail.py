# 203_bounded_mean_without_a_tail.py - leaves the last three of 5,003 bounded values out.
# Must be caught: on a background near zero they are a large part of the mean.
# task: sigmoid_mean
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void rows_kernel(const float* x, float* y, int rows, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float* v = x + (size_t)r * n;
    float s = 0.0f;
    for (int i = 0; i < n - 3; i++) s += 1.0f / (1.0f + expf(-v[i]));
    y[r] = s / n;
}

torch::Tensor rows(torch::Tensor x) {
    auto y = torch::empty({x.size(0)}, x.options());
    int rows = x.size(0), n = x.size(1);
    rows_kernel<<<(rows + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, n);
    return y;
}
"""

ext = load_inline(name="corpus_sigmoid_mean", cuda_sources=source, functions=["rows"],
                  cpp_sources="torch::Tensor rows(torch::Tensor x);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        pass

    def forward(self, x):
        return ext.rows(x)
