# 19c_graph_of_the_runtime.py - records and launches a graph with the runtime's own functions, in C++.
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

static cudaGraphExec_t exec;
static float *here, *there;
static int size;

static void record(int n) {
    cudaStream_t s;
    cudaGraph_t graph;
    cudaMalloc(&here, n * sizeof(float));
    cudaMalloc(&there, n * sizeof(float));
    cudaStreamCreate(&s);
    cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
    relu_kernel<<<(n + 255) / 256, 256, 0, s>>>(here, there, n);
    relu_kernel<<<(n + 255) / 256, 256, 0, s>>>(there, there, n);
    cudaStreamEndCapture(s, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(s);
    size = n;
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    if (n != size) record(n);
    cudaStream_t s = at::cuda::getCurrentCUDAStream();
    cudaMemcpyAsync(here, x.data_ptr<float>(), n * sizeof(float), cudaMemcpyDeviceToDevice, s);
    cudaGraphLaunch(exec, s);
    cudaMemcpyAsync(y.data_ptr<float>(), there, n * sizeof(float), cudaMemcpyDeviceToDevice, s);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
