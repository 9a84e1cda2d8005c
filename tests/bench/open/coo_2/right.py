import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void sampled_product(const int64_t *row, const int64_t *col, const float *a, const float *b,
    float *out, int n,
                                int depth)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0.0f;

    if (k >= n)
        return;
    for (int d = 0; d < depth; ++d)
        s += a[row[k] * depth + d] * b[col[k] * depth + d];
    out[k] = s;
}

torch::Tensor forward(torch::Tensor row, torch::Tensor col, torch::Tensor a, torch::Tensor b)
{
    int n = row.numel(), depth = a.size(1);
    auto out = torch::empty({n}, a.options());
    sampled_product<<<(n + 127) / 128, 128>>>(row.data_ptr<int64_t>(), col.data_ptr<int64_t>(), a.data_ptr<float>(),
                                              b.data_ptr<float>(), out.data_ptr<float>(), n, depth);
    return out;
}
"""
module = load_inline("coo_2", cpp_sources="torch::Tensor forward(torch::Tensor row, torch::Tensor col, "
                                          "torch::Tensor a, torch::Tensor b);",
                     cuda_sources=source, functions=["forward"])


class ModelNew(nn.Module):
    def forward(self, row, col, a, b):
        return module.forward(row, col, a, b)
