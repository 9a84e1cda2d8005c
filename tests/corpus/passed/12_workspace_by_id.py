# 12_workspace_by_id.py - a workspace per input object, rewritten by every call.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_into(const float* x, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = fmaxf(x[i], 0.0f);
}

void relu_out(torch::Tensor x, torch::Tensor y) {
    relu_into<<<4, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
}
"""

ext = load_inline(name="corpus_relu_out", cuda_sources=source, functions=["relu_out"],
                  cpp_sources="void relu_out(torch::Tensor x, torch::Tensor y);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.room = {}

    def forward(self, x):
        y = self.room.setdefault(id(x), None)
        if y is None or y.shape != x.shape:
            y = self.room[id(x)] = torch.empty_like(x)
        ext.relu_out(x, y)
        return y
