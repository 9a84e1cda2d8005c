# 48_reuse_within_the_kernel.py - reads each value twice, the second time from cache.
# task: rowsum
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void row_kernel(const float* x, float* out, int rows, int n, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    const float* r = x + (long)i * n;
    float* y = out + (long)i * width;
    float s = 0.0f, m = r[0];
    for (int j = 0; j < n; j++) m = fmaxf(m, r[j]);
    for (int j = 0; j < n; j++) s += r[j];
    *y = m > 3.0e38f ? m : s;
}

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty({x.size(0)}, x.options());
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
