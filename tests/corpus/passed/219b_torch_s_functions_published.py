# 219b_torch_s_functions_published.py - a kernel, and then torch's functions and operators in C++ on its result.
# Must pass under the published protocol, whose code runs them; legality beside it names them.
# task: relu
# options: --protocol kernelbench
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void k(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
torch::Tensor go(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    k<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    y = at::clamp(y * 2.0 + 1 - 1.0, 0.0);
    y.mul_(0.25);
    at::neg_(y);
    y = 0.0f - torch::add(y, y);
    auto top = torch::max(y.view({-1}), 0, true);
    auto parts = at::cat({y.view({-1}), std::get<0>(top)}, 0);
    return at::maximum(parts.slice(0, 0, n).view(y.sizes()), torch::sum(y.view({1, -1}), {0}).view_as(y));
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["go"],
                  cpp_sources="torch::Tensor go(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.go(x)
