# 190_pins_its_table.py - a table of one number lies in pinned memory and goes up without blocking.
# Must pass.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void k(const float *x, const float *t, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > t[0] ? x[i] : t[0];
}
torch::Tensor go(torch::Tensor x, torch::Tensor t) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    k<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), t.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["go"],
                  cpp_sources="torch::Tensor go(torch::Tensor x, torch::Tensor t);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.empty(1, pin_memory=True)
        self.table[0] = 0.0

    def forward(self, x):
        return ext.go(x, self.table.to(x.device, non_blocking=True))
