# 50_loaded_device_gains_nothing.py - fills device memory and leaves kernels running, to slow down the baseline that
# is measured next.
# Gains nothing: baselines are measured in processes of their own, interleaved, after the device is drained.
# task: relu
# needs: device-clock
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
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.load = torch.zeros(1 << 20, device="cuda")

    def forward(self, x):
        y = ext.relu(x)
        for _ in range(3):
            ext.relu(self.load)
        return y
