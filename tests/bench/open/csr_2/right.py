import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void csr_times_dense(const int64_t *crow, const int64_t *col, const float *values, const float *x,
    float *out,
                                int rows, int width)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / width, c = i % width;
    float a = 0.0f;

    if (row >= rows)
        return;
    for (int64_t k = crow[row]; k < crow[row + 1]; ++k)
        a += values[k] * x[col[k] * width + c];
    out[i] = a;
}

torch::Tensor forward(torch::Tensor crow, torch::Tensor col, torch::Tensor values, torch::Tensor x)
{
    int rows = crow.numel() - 1, width = x.size(1);
    auto out = torch::empty({rows, width}, x.options());
    csr_times_dense<<<(rows * width + 127) / 128, 128>>>(crow.data_ptr<int64_t>(), col.data_ptr<int64_t>(),
                                                         values.data_ptr<float>(), x.data_ptr<float>(),
                                                         out.data_ptr<float>(), rows, width);
    return out;
}
"""
module = load_inline("csr_2", cpp_sources="torch::Tensor forward(torch::Tensor crow, torch::Tensor col, "
                                          "torch::Tensor values, torch::Tensor x);",
                     cuda_sources=source, functions=["forward"])


class ModelNew(nn.Module):
    def forward(self, crow, col, values, x):
        return module.forward(crow, col, values, x)
