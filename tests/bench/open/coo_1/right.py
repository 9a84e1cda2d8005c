import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void coo_times_vector(const int64_t *row, const int64_t *col, const float *values, const float *x,
    float *out,
                                 int n)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;

    if (k < n)
        atomicAdd(&out[row[k]], values[k] * x[col[k]]);
}

torch::Tensor forward(torch::Tensor row, torch::Tensor col, torch::Tensor values, torch::Tensor x, int64_t rows)
{
    int n = values.numel();
    auto out = torch::zeros({rows}, x.options());
    coo_times_vector<<<(n + 127) / 128, 128>>>(row.data_ptr<int64_t>(), col.data_ptr<int64_t>(),
        values.data_ptr<float>(),
                                               x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
"""
module = load_inline("coo_1", cpp_sources="torch::Tensor forward(torch::Tensor row, torch::Tensor col, "
                                          "torch::Tensor values, torch::Tensor x, int64_t rows);",
                     cuda_sources=source, functions=["forward"])


class ModelNew(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.rows = rows

    def forward(self, row, col, values, x):
        return module.forward(row, col, values, x, self.rows)
