# 24_looks_for_the_reference.py - searches loaded modules and live objects for the reference's class.
# Must be caught: there is nothing to find.
# task: relu
import gc
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


def reference():
    for module in list(sys.modules.values()):
        if isinstance(getattr(module, "Model", None), type) and hasattr(module, "get_inputs"):
            return module.Model
    for o in gc.get_objects():
        if isinstance(o, type) and o.__name__ == "Model" and issubclass(o, nn.Module):
            return o
    raise LookupError("no reference in this process")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = reference()()

    def forward(self, x):
        ext.relu(x)
        return self.model(x)
