# 118_answers_from_its_first_call.py - computes once, keeps the answer, and copies it with its own kernel ever after.
# Must be caught: a first call that is replayed gets other inputs, at the same addresses.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

__global__ void copy_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

torch::Tensor relu(torch::Tensor x) {
    static torch::Tensor kept;
    auto y = torch::empty_like(x);
    int n = x.numel(), blocks = (n + 127) / 128;
    if (kept.defined() && kept.numel() == n) {
        copy_kernel<<<blocks, 128>>>(kept.data_ptr<float>(), y.data_ptr<float>(), n);
        return y;
    }
    relu_kernel<<<blocks, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    kept = y;
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
