# 72_device_global_read_by_the_host.py - a kernel fills a __device__ array that the host then reads and writes
# directly.
# Must be caught: on a GPU the host sees another copy of the array; here the launches alone must reproduce the answer.
# task: relu
# backends: sim
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__device__ float window[4096];

__global__ void take(const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) window[i] = x[i];
}

__global__ void give(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = window[i];
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    take<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), n);
    for (int i = 0; i < n; i++) window[i] = window[i] > 0.0f ? window[i] : 0.0f;
    give<<<(n + 255) / 256, 256>>>(y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
