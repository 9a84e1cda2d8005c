# 95c_graph_made_node_by_node.py - makes a graph of one kernel node in __init__, and gives it each call's pointers.
# task: relu
# sim: unsupported: a node names its kernel by an untyped pointer
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <ATen/cuda/CUDAContext.h>

__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

static cudaGraph_t graph;
static cudaGraphNode_t node;
static cudaGraphExec_t exec;

static cudaKernelNodeParams params(void** args, int n) {
    cudaKernelNodeParams p = {};
    p.func = (void*)relu_kernel;
    p.gridDim = dim3((n + 255) / 256);
    p.blockDim = dim3(256);
    p.kernelParams = args;
    return p;
}

void make() {
    float* none = nullptr;
    int n = 0;
    void* args[] = {&none, &none, &n};
    cudaKernelNodeParams p = params(args, 1);
    cudaGraphCreate(&graph, 0);
    cudaGraphAddKernelNode(&node, graph, nullptr, 0, &p);
    cudaGraphInstantiate(&exec, graph, 0);
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    const float* from = x.data_ptr<float>();
    float* to = y.data_ptr<float>();
    int n = x.numel();
    void* args[] = {&from, &to, &n};
    cudaKernelNodeParams p = params(args, n);
    cudaGraphExecKernelNodeSetParams(exec, node, &p);
    cudaGraphLaunch(exec, at::cuda::getCurrentCUDAStream());
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["make", "relu"],
                  cpp_sources="void make(); torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        ext.make()

    def forward(self, x):
        return ext.relu(x)
