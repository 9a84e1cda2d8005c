# 102_reads_a_scale.py - a kernel finds the largest absolute value, the host reads that one number and hands it to
# every launch.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void largest_kernel(const float* x, float* m, int n) {
    float v = 0.0f;
    for (int i = 0; i < n; i++) v = fmaxf(v, fabsf(x[i]));
    *m = v;
}

__global__ void relu_kernel(const float* x, float* y, int n, float largest) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fminf(fmaxf(x[i], 0.0f), largest);
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x), m = torch::empty({1}, x.options());
    int n = x.numel();
    float largest = 0.0f;
    largest_kernel<<<1, 1>>>(x.data_ptr<float>(), m.data_ptr<float>(), n);
    cudaMemcpy(&largest, m.data_ptr<float>(), sizeof largest, cudaMemcpyDeviceToHost);
    for (int at = 0; at < n; at += 16)
        relu_kernel<<<1, 16>>>(x.data_ptr<float>() + at, y.data_ptr<float>() + at, n - at, largest);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
