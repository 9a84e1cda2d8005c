# 19b_graph_of_several_kernels_and_copies.py - a graph of two kernels with a copy in memory between them, kept by
# shape at module level.
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

void relu_to(torch::Tensor x, torch::Tensor y) {
    int n = x.numel();
    auto s = at::cuda::getCurrentCUDAStream();
    relu_kernel<<<(n + 255) / 256, 256, 0, s>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
}
"""

ext = load_inline(name="corpus_relu_to", cuda_sources=source, functions=["relu_to"],
                  cpp_sources="void relu_to(torch::Tensor x, torch::Tensor y);")

graphs = {}


def record(x):
    here, first, second, there = (torch.zeros_like(x) for _ in range(4))
    ext.relu_to(here, first)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ext.relu_to(here, first)
        second.copy_(first)
        ext.relu_to(second, there)
    return graph, here, there, first, second


class ModelNew(nn.Module):
    def forward(self, x):
        if x.shape not in graphs:
            graphs[x.shape] = record(x)
        graph, here, there = graphs[x.shape][:3]
        here.copy_(x)
        graph.replay()
        return there.clone()
