# 262_macros_and_both_registries.py - short macros by flags, names alone, a block for torch's own registry.
# task: scaled_columns
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void scale(const float* x, const float* a, const float* b, float* y, int n, int c) {
    int i = blockIdx.x * N + threadIdx.x;
    if (i < n) y[i] = x[i] * a[i % c] + b[i % c];
}

torch::Tensor run(torch::Tensor x, torch::Tensor a, torch::Tensor b) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    scale<<<(n + N - 1) / N, N>>>(x.data_ptr<float>(), a.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), n,
                                  x.size(D));
    return y;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("run", &run, "scales columns", py::arg("x"), py::kw_only(), py::arg("a"), py::arg("b"));
}

TORCH_LIBRARY(own, m) {
    m.def("run", run);
}
"""
mod = load_inline(name="own", cpp_sources="", cuda_sources=cuda, extra_cuda_cflags=["-O3", "-DN=64", "-DD=1"])


class ModelNew(nn.Module):
    def forward(self, x, a, b):
        return mod.run(x, a=a, b=b)
