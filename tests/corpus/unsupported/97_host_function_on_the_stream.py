# 97_host_function_on_the_stream.py - lets the stream call a function of the host between two kernels, on memory that
# both see.
# Must be caught: kernels need no host function in their order.
# The device does not call the host.
# task: relu
# backends: cuda
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void copy_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

static float* shared;
static int size;

static void CUDART_CB compute(void*) {
    for (int i = 0; i < size; i++) shared[i] = shared[i] > 0.0f ? shared[i] : 0.0f;
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = size = x.numel();
    if (!shared) cudaHostAlloc(&shared, 64 << 20, cudaHostAllocMapped);
    copy_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), shared, n);
    cudaLaunchHostFunc(0, compute, nullptr);
    copy_kernel<<<(n + 255) / 256, 256>>>(shared, y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
