# 90_table_on_the_device.py - a kernel that reads a table which __init__ filled.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, const float* table, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * table[x[i] > 0.0f];
}

torch::Tensor relu(torch::Tensor x, torch::Tensor table) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), table.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x, torch::Tensor table);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.tensor([0.0, 1.0], device="cuda")

    def forward(self, x):
        return ext.relu(x, self.table)
