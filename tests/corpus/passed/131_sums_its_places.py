# 131_sums_its_places.py - a kernel sums the squares of the places up to its own and multiplies.
# task: places
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void scale_kernel(const float* x, const long* places, float* y, int n, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long s = 0;
    for (int k = i / width * width; k <= i; k++) s += places[k] * places[k];
    y[i] = x[i] * (float)(s % 97);
}

torch::Tensor scale(torch::Tensor x, torch::Tensor places) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    scale_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), (const long*)places.data_ptr(), y.data_ptr<float>(),
                                           n, (int)x.size(1));
    return y;
}
"""
ops = load_inline(name="op131b", cpp_sources="torch::Tensor scale(torch::Tensor x, torch::Tensor places);",
                  cuda_sources=source, functions=["scale"])


class ModelNew(nn.Module):
    def forward(self, x, places):
        return ops.scale(x, places)
