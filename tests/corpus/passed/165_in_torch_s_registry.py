# 165_in_torch_s_registry.py - operators of torch's own registry: by schema and place, and by a function alone.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
__global__ void relu_kernel(const float* x, float* y, int n, float slope) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : slope * x[i];
}

torch::Tensor relu(const torch::Tensor& x, double slope, std::optional<int64_t> threads) {
    auto y = torch::empty_like(x);
    int n = x.numel(), t = threads.value_or(64);
    relu_kernel<<<(n + t - 1) / t, t>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, slope);
    return y;
}
torch::Tensor on_the_host(const torch::Tensor& x, double slope, std::optional<int64_t> threads) { return x; }
void same(torch::Tensor& x) {}

TORCH_LIBRARY(op165, m) {
    m.def("relu(Tensor x, *, float slope=0.0, int? threads=None) -> Tensor");
    m.def("same", &same);
}
TORCH_LIBRARY_IMPL(op165, CUDA, m) { m.impl("relu", &relu); }
TORCH_LIBRARY_IMPL(op165, CPU, m) { m.impl("relu", TORCH_FN(on_the_host)); }
"""
load_inline(name="op165c", cpp_sources="", cuda_sources=source, is_python_module=False)


class ModelNew(nn.Module):
    def forward(self, x):
        torch.ops.op165.same(x)
        return torch.ops.op165.relu.default(torch.ops.op165.relu(x), threads=128)
