# 126_view_of_a_larger_buffer.py - writes into a larger buffer and returns the part that counts.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

void relu(torch::Tensor x, torch::Tensor y) {
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["relu"],
                  cpp_sources="void relu(torch::Tensor x, torch::Tensor y);")


class ModelNew(nn.Module):
    def forward(self, x):
        buffer = torch.empty(2 * x.shape[0] + 3, x.shape[1], device=x.device)
        y = buffer[3:3 + x.shape[0]]
        ext.relu(x, y)
        return y
