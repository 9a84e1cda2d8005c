# 146_drops_nothing_outside_of_training.py - keeps the task's dropout module behind its kernel: outside of training it
# is its input.
# task: rests
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void gate_kernel(const float* x, const float* w, float* y, int n, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1.0f / (1.0f + expf(-x[i] * w[i % width]));
}

torch::Tensor gate(torch::Tensor x, torch::Tensor w) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    gate_kernel<<<(n + 255) / 256, 256>>>(
        x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), n, (int)w.numel());
    return y;
}
"""
ops = load_inline(name="op146",
                  cpp_sources="torch::Tensor gate(torch::Tensor x, torch::Tensor w);", cuda_sources=source,
                  functions=["gate"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.4)
        self.weight = nn.Parameter(torch.randn(50))

    def forward(self, x):
        return self.drop(ops.gate(x, self.weight))
