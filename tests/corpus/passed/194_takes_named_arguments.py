# 194_takes_named_arguments.py - a task that names its device and its constructor's arguments.
# Must pass: KernelBook's tasks and many others are written so.
# task: named_device
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void k(const float *x, float *y, int n, float slope) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : slope * x[i];
}
torch::Tensor go(torch::Tensor x, double slope) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    k<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, (float)slope);
    return y;
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["go"],
                  cpp_sources="torch::Tensor go(torch::Tensor x, double slope);")


class ModelNew(nn.Module):
    def __init__(self, slope, floor=0.0):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return ext.go(x, self.slope)
