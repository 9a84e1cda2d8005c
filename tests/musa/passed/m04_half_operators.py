# m04_half_operators.py - operators of half, which torch_musa disables for nobody.
# task: half
import torch
import torch.nn as nn
from torch_musa.utils.musa_extension import load_inline

SOURCE = r"""
#include <musa_fp16.h>

__global__ void scale(const __half *x, __half *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] * __float2half(1.5f);
}

torch::Tensor run(torch::Tensor x)
{
    auto y = torch::empty_like(x);
    int n = x.numel();
    scale<<<(n + 127) / 128, 128>>>((const __half *)x.data_ptr<at::Half>(), (__half *)y.data_ptr<at::Half>(), n);
    return y;
}
"""

ext = load_inline(name="m04_half_operators", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  musa_sources=SOURCE, functions=["run"], extra_musa_cflags=["-O3", "--offload-arch=mp_31"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
