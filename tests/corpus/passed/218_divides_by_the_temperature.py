# 218_divides_by_the_temperature.py - a softmax at the temperature that it is given.
# task: temperature
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void k(const float* x, float* y, float t, int d) {
    int r = blockIdx.x;
    float m = -INFINITY, z = 0;
    for (int j = 0; j < d; j++) m = fmaxf(m, x[r * d + j] / t);
    for (int j = 0; j < d; j++) z += expf(x[r * d + j] / t - m);
    y[r * d + threadIdx.x] = expf(x[r * d + threadIdx.x] / t - m) / z;
}

torch::Tensor run(torch::Tensor x, double t) {
    auto y = torch::empty_like(x);
    k<<<x.size(0), x.size(1)>>>(x.data_ptr<float>(), y.data_ptr<float>(), t, x.size(1));
    return y;
}
"""
ext = load_inline(name="temperature", cpp_sources="torch::Tensor run(torch::Tensor x, double t);",
    cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x, temperature):
        return ext.run(x, temperature)
