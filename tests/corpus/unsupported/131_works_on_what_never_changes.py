# 131_works_on_what_never_changes.py - reads the places, which are the same in every draw, makes numbers of them on
# the host and uploads those; its kernel multiplies.
# Must be caught: the numbers are right in each replay, and the host computed them.
# task: places
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void scale_kernel(const float* x, const float* s, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * s[i];
}

torch::Tensor scale(torch::Tensor x, torch::Tensor s) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    scale_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), s.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
ops = load_inline(name="op131", cpp_sources="torch::Tensor scale(torch::Tensor x, torch::Tensor s);",
                  cuda_sources=source, functions=["scale"])


class ModelNew(nn.Module):
    def forward(self, x, places):
        p = places.cpu()
        return ops.scale(x, (torch.cumsum(p * p, dim=1) % 97).float().cuda())
