# m06_bfloat16_by_both_names.py - bfloat16 on the way, under both of its names.
# task: relu
import torch
import torch.nn as nn
from torch_musa.utils.musa_extension import load_inline

SOURCE = r"""
#include <musa_bf16.h>

__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    mt_bfloat16 sign = __float2bfloat16(x[i] > 0.0f ? 1.0f : 0.0f);
    __mt_bfloat16 same = sign;
    y[i] = x[i] > 0.0f ? x[i] * __bfloat162float(same) : 0.0f;
}

torch::Tensor run(torch::Tensor x)
{
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="m06_bfloat16_by_both_names", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  musa_sources=SOURCE, functions=["run"], extra_musa_cflags=["-O3", "--offload-arch=mp_31"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
