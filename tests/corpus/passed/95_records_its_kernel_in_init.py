# 95_records_its_kernel_in_init.py - records its own kernel into a graph in __init__.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <ATen/cuda/CUDAContext.h>

__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    auto s = at::cuda::getCurrentCUDAStream();
    relu_kernel<<<(n + 255) / 256, 256, 0, s>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.static, self.graph = torch.zeros(1 << 16, device="cuda"), torch.cuda.CUDAGraph()
        ext.relu(self.static)
        torch.cuda.synchronize()
        with torch.cuda.graph(self.graph):
            self.out = ext.relu(self.static)

    def forward(self, x):
        self.static[:x.numel()].copy_(x.reshape(-1))
        self.graph.replay()
        return self.out[:x.numel()].reshape(x.shape).clone()
