# 25_fallback_to_another_kernel.py - falls back from one kernel of its own to another.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}

torch::Tensor relu_wide(torch::Tensor x) {
    TORCH_CHECK(x.numel() % 1024 == 0, "only multiples of 1024");
    return relu(x);
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu", "relu_wide"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x); torch::Tensor relu_wide(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        try:
            return ext.relu_wide(x)
        except RuntimeError:
            return ext.relu(x)
