# 20_scratch_file.py - writes its own source to /tmp and builds it from there.
# task: relu
import os
import tempfile

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load

folder = tempfile.mkdtemp()
with open(os.path.join(folder, "relu.cu"), "w") as f:
    f.write(r"""
#include <torch/extension.h>

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

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("relu", &relu);
}
""")
ext = load(name="corpus_relu_file", sources=[os.path.join(folder, "relu.cu")])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
