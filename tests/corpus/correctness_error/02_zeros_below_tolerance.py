# 02_zeros_below_tolerance.py - writes zeros where every expected value is smaller than a fixed absolute tolerance.
# Must be caught: the tolerance is scaled by the output and the measured noise.
# task: softmax_wide
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void row_kernel(const float* x, float* out, int rows, int n, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    const float* r = x + (long)i * n;
    float* y = out + (long)i * width;
    for (int j = 0; j < n; j++) y[j] = 0.0f;
}

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int rows = x.size(0), n = x.size(1);
    row_kernel<<<(rows + 31) / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, n, y.numel() / rows);
    return y;
}
"""

ext = load_inline(name="corpus_run", cuda_sources=source, functions=["run"],
                  cpp_sources="torch::Tensor run(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
