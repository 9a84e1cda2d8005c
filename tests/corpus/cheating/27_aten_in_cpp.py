# 27_aten_in_cpp.py - the C++ half calls at::linear and launches a kernel that does nothing.
# Must be caught: operators that C++ calls go through the same dispatcher.
# task: linear
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void nothing(float* y) {}

torch::Tensor fc(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    auto y = at::linear(x, w, b);
    nothing<<<1, 32>>>(y.data_ptr<float>());
    return y;
}
"""

ext = load_inline(name="corpus_fc", cuda_sources=source, functions=["fc"],
                  cpp_sources="torch::Tensor fc(torch::Tensor x, torch::Tensor w, torch::Tensor b);")


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)

    def forward(self, x):
        return ext.fc(x, self.fc.weight, self.fc.bias)
