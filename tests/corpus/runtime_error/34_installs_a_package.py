# 34_installs_a_package.py - installs a package with fast kernels.
# Must be caught: no programs can be started, and there is no network.
# task: relu
import subprocess
import sys

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

subprocess.run([sys.executable, "-m", "pip", "install", "some-kernels"], check=True)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
