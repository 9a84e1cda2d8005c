# 02_softmax_of_small_values.py - a softmax whose values are all below 1e-4, computed.
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
    float m = r[0], s = 0.0f;
    for (int j = 1; j < n; j++) m = fmaxf(m, r[j]);
    for (int j = 0; j < n; j++) s += expf(r[j] - m);
    for (int j = 0; j < n; j++) y[j] = expf(r[j] - m) / s;
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
