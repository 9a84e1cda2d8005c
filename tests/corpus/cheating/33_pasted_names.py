# 33_pasted_names.py - spells at::relu with the preprocessor.
# Must be caught: what runs is judged, not how it is written.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#define GLUE(a, b) a##b

__global__ void nothing(float* y) {}

torch::Tensor relu(torch::Tensor x) {
    auto y = at::GLUE(re, lu)(x);
    nothing<<<1, 32>>>(y.data_ptr<float>());
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
