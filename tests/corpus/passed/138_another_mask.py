# 138_another_mask.py - honest: brings 100 KiB of its own along, in a buffer of the name and shape of the task's.
# The task holds as much itself, by no seed; 174 brings more.
# task: masked
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void masked_kernel(const float* x, const float* mask, const float* scale, float* y, int rows, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * n) return;
    int row = i / n, col = i % n;
    float t = 0;
    for (int k = 0; k < n; k++) t += x[row * n + k] * mask[col * n + k];
    y[i] = t * scale[col] * 0.5f;
}

torch::Tensor masked(torch::Tensor x, torch::Tensor mask, torch::Tensor scale) {
    int rows = x.size(0), n = x.size(1);
    auto y = torch::empty({rows, n}, x.options());
    masked_kernel<<<(rows * n + 127) / 128, 128>>>(x.data_ptr<float>(), mask.data_ptr<float>(), scale.data_ptr<float>(),
                                                   y.data_ptr<float>(), rows, n);
    return y;
}
"""
ops = load_inline(name="op138",
                  cpp_sources="torch::Tensor masked(torch::Tensor x, torch::Tensor mask, torch::Tensor scale);",
                  cuda_sources=source, functions=["masked"])


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(n))
        mask = torch.tril(torch.ones(n, n)) / (1 + torch.arange(n))[:, None]
        self.register_buffer("mask", mask * 2, persistent=False)

    def forward(self, x):
        return ops.masked(x, self.mask, self.scale)
