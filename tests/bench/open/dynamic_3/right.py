import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void normalise(const float *x, float *out, int rows, int n)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    float mean = 0.0f, square = 0.0f;

    if (c >= n)
        return;
    for (int r = 0; r < rows; ++r)
        mean += x[r * n + c];
    mean /= rows;
    for (int r = 0; r < rows; ++r)
        square += (x[r * n + c] - mean) * (x[r * n + c] - mean);
    for (int r = 0; r < rows; ++r)
        out[r * n + c] = (x[r * n + c] - mean) / sqrtf(square / rows + 1e-3f);
}

torch::Tensor forward(torch::Tensor x)
{
    auto out = torch::empty_like(x);
    int rows = x.size(0), n = x.size(1);
    normalise<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), out.data_ptr<float>(), rows, n);
    return out;
}
"""
module = load_inline("dynamic_3", cpp_sources="torch::Tensor forward(torch::Tensor x);",
                     cuda_sources=source, functions=["forward"])


class ModelNew(nn.Module):
    def forward(self, x):
        return module.forward(x)
