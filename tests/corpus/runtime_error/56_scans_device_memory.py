# 56_scans_device_memory.py - reads device memory beyond its own tensors, looking for the expected output.
# Must be caught: red zones and guard pages lie around every tensor, and expected values are elsewhere.
# On a GPU a read inside of mapped memory faults nowhere: what lies there is no answer, so the values are wrong.
# cuda: correctness_error
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i + 4096], 0.0f);
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
    def forward(self, x):
        return ext.relu(x)
