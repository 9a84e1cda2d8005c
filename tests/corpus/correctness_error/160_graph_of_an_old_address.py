# 160_graph_of_an_old_address.py - its graph reads where the first call's input lay.
# Must be caught: the next call's input lies elsewhere.
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

void relu(int64_t x, torch::Tensor y) {
    int n = y.numel();
    relu_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>((const float*)x, y.data_ptr<float>(), n);
}
"""
ops = load_inline(name="op160", cpp_sources="void relu(int64_t x, torch::Tensor y);", cuda_sources=source,
                  functions=["relu"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graphs = {}

    def forward(self, x):
        key = x.shape
        if key not in self.graphs:
            y = torch.empty_like(x)
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g):
                ops.relu(x.data_ptr(), y)
            self.graphs[key] = g, y
        g, y = self.graphs[key]
        g.replay()
        return y
