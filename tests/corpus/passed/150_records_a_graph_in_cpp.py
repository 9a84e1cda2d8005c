# 150_records_a_graph_in_cpp.py - records its kernel into a graph by the runtime's C interface and launches that.
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
    static cudaGraphExec_t ready = nullptr;
    static torch::Tensor in, out;
    int n = x.numel();
    if (!ready) {
        cudaStream_t s;
        cudaGraph_t graph;
        in = torch::empty_like(x), out = torch::empty_like(x);
        cudaStreamCreate(&s);
        cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
        relu_kernel<<<(n + 255) / 256, 256, 0, s>>>(in.data_ptr<float>(), out.data_ptr<float>(), n);
        cudaStreamEndCapture(s, &graph);
        cudaGraphInstantiate(&ready, graph, nullptr, nullptr, 0);
        cudaGraphDestroy(graph);
    }
    in.copy_(x);
    cudaGraphLaunch(ready, 0);
    return out.clone();
}
"""
ops = load_inline(name="op150",
                  cpp_sources="torch::Tensor relu(torch::Tensor x);", cuda_sources=source, functions=["relu"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ops.relu(x)
