# 70_reads_one_number.py - reads one number of the input to choose between two launches.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

torch::Tensor relu(torch::Tensor x, double first) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    int b = first > 0 ? 256 : 128;
    relu_kernel<<<(n + b - 1) / b, b>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x, double first);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x, x.view(-1)[0].item())
