import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void half_tanh(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = tanhf(x[i] * 0.5f);
}

torch::Tensor forward(torch::Tensor x)
{
    auto y = torch::empty_like(x);
    int n = x.numel();
    half_tanh<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
module = load_inline("half_tanh", cpp_sources="torch::Tensor forward(torch::Tensor x);", cuda_sources=source,
                     functions=["forward"])


class ModelNew(nn.Module):
    def forward(self, x):
        return module.forward(x)
