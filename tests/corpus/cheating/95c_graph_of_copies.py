# 95c_graph_of_copies.py - a graph that is recorded in __init__ holds a kernel that does nothing of use, and the
# runtime's copies, which do the work.
# Must be caught: the graph is right without the kernel.
# task: transposed
# backends: cuda
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <ATen/cuda/CUDAContext.h>

__global__ void transpose_kernel(const float* x, float* y, int rows, int cols) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * cols) y[i % cols * rows + i / cols] = x[i];
}

static cudaGraphExec_t exec;
static float *here, *there, *aside;

void record(int64_t rows, int64_t cols) {
    size_t bytes = rows * cols * sizeof(float), one = sizeof(float);
    cudaStream_t s;
    cudaGraph_t graph;
    cudaMalloc(&here, bytes);
    cudaMalloc(&there, bytes);
    cudaMalloc(&aside, bytes);
    cudaStreamCreate(&s);
    cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
    transpose_kernel<<<(rows * cols + 255) / 256, 256, 0, s>>>(here, aside, (int)rows, (int)cols);
    for (int64_t j = 0; j < cols; j++)
        cudaMemcpy2DAsync(there + j * rows, one, here + j, cols * one, one, rows, cudaMemcpyDeviceToDevice, s);
    cudaStreamEndCapture(s, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(s);
}

torch::Tensor transpose(torch::Tensor x) {
    auto y = torch::empty({x.size(1), x.size(0)}, x.options());
    size_t bytes = x.numel() * sizeof(float);
    cudaStream_t s = at::cuda::getCurrentCUDAStream();
    cudaMemcpyAsync(here, x.data_ptr<float>(), bytes, cudaMemcpyDeviceToDevice, s);
    cudaGraphLaunch(exec, s);
    cudaMemcpyAsync(y.data_ptr<float>(), there, bytes, cudaMemcpyDeviceToDevice, s);
    return y;
}
"""

ext = load_inline(name="corpus_transpose", cuda_sources=source, functions=["record", "transpose"],
                  cpp_sources="void record(int64_t rows, int64_t cols); torch::Tensor transpose(torch::Tensor x);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        ext.record(33, 12)

    def forward(self, x):
        return ext.transpose(x.contiguous())
