# 15_buffer_by_shape.py - a buffer per shape, rewritten by every call.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_into(const float* x, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = fmaxf(x[i], 0.0f);
}

__global__ void copy(const float* x, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[i];
}

torch::Tensor relu_by(torch::Tensor x, torch::Tensor room) {
    auto y = torch::empty_like(x);
    relu_into<<<4, 64>>>(x.data_ptr<float>(), room.data_ptr<float>(), x.numel());
    copy<<<4, 64>>>(room.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""

ext = load_inline(name="corpus_relu_by", cuda_sources=source, functions=["relu_by"],
                  cpp_sources="torch::Tensor relu_by(torch::Tensor x, torch::Tensor room);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.buffers = {}

    def forward(self, x):
        key = tuple(x.shape)
        if key not in self.buffers:
            self.buffers[key] = torch.empty_like(x)
        return ext.relu_by(x, self.buffers[key])
