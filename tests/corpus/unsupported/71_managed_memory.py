# 71_managed_memory.py - one kernel copies the input to managed memory, a loop on the host computes there, another
# kernel copies back.
# Must be caught: the launches alone must reproduce the answer.
# Host memory is never mapped for the device.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void copy_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    float *shared = nullptr;
    cudaMallocManaged(&shared, n * sizeof(float));
    copy_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), shared, n);
    cudaDeviceSynchronize();
    for (int i = 0; i < n; i++) shared[i] = shared[i] > 0.0f ? shared[i] : 0.0f;
    copy_kernel<<<(n + 255) / 256, 256>>>(shared, y.data_ptr<float>(), n);
    cudaDeviceSynchronize();
    cudaFree(shared);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
