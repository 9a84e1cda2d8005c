# 14_cache_by_fingerprint.py - keeps outputs by a few sampled elements of the input.
# Must be caught: some draws differ from the one before in a few elements only, and every element is compared.
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
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.known = {}

    def forward(self, x):
        flat = x.view(-1)
        key = tuple(flat[i].item() for i in (0, flat.numel() // 3, flat.numel() // 2, flat.numel() - 1))
        if key not in self.known:
            self.known[key] = ext.relu(x)
        return self.known[key]
