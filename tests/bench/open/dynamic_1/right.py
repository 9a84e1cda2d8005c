import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void softmax(const float *x, float *out, int rows, int n, float scale)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;

    if (row >= rows)
        return;
    float top = -INFINITY, sum = 0.0f;
    for (int j = 0; j < n; ++j)
        top = fmaxf(top, x[row * n + j] * scale);
    for (int j = 0; j < n; ++j)
        sum += expf(x[row * n + j] * scale - top);
    for (int j = 0; j < n; ++j)
        out[row * n + j] = expf(x[row * n + j] * scale - top) / sum;
}

torch::Tensor forward(torch::Tensor x)
{
    auto out = torch::empty_like(x);
    int rows = x.size(0), n = x.size(1);
    softmax<<<(rows + 127) / 128, 128>>>(x.data_ptr<float>(), out.data_ptr<float>(), rows, n, 1.0f);
    return out;
}
"""
module = load_inline("dynamic_1", cpp_sources="torch::Tensor forward(torch::Tensor x);",
                     cuda_sources=source, functions=["forward"])


class ModelNew(nn.Module):
    def forward(self, x):
        return module.forward(x)
