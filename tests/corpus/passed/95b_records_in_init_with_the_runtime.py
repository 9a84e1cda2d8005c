# 95b_records_in_init_with_the_runtime.py - records a graph with the runtime's own functions in __init__; forward
# launches it.
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

void record(int64_t n) {
    cudaStream_t s;
    cudaGraph_t graph;
    cudaMalloc(&here, n * sizeof(float));
    cudaMalloc(&there, n * sizeof(float));
    cudaMemset(here, 0, n * sizeof(float));
    cudaStreamCreate(&s);
    cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
    relu_kernel<<<(n + 255) / 256, 256, 0, s>>>(here, there, (int)n);
    cudaStreamEndCapture(s, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(s);
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    size_t bytes = x.numel() * sizeof(float);
    cudaStream_t s = at::cuda::getCurrentCUDAStream();
    cudaMemcpyAsync(here, x.data_ptr<float>(), bytes, cudaMemcpyDeviceToDevice, s);
    cudaGraphLaunch(exec, s);
    cudaMemcpyAsync(y.data_ptr<float>(), there, bytes, cudaMemcpyDeviceToDevice, s);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["record", "relu"],
                  cpp_sources="void record(int64_t n); torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        ext.record(1 << 16)

    def forward(self, x):
        return ext.relu(x)
