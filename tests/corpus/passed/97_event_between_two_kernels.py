# 97_event_between_two_kernels.py - orders two kernels by an event of the stream.
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
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    cudaEvent_t done;
    cudaEventCreate(&done);
    cudaEventRecord(done, 0);
    cudaStreamWaitEvent(0, done, 0);
    relu_kernel<<<(n + 255) / 256, 256>>>(y.data_ptr<float>(), y.data_ptr<float>(), n);
    cudaEventDestroy(done);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
