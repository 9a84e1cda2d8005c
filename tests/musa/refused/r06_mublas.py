# r06_mublas.py - muBLAS does the arithmetic.
# task: relu
# expect: cheating
# says: mublas
import torch
import torch.nn as nn
from torch_musa.utils.musa_extension import load_inline

SOURCE = r"""
#include <mublas.h>

__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = fmaxf(x[i], 0.0f);
}

torch::Tensor run(torch::Tensor x)
{
    auto y = torch::empty_like(x);
    int n = x.numel();
    mublasHandle_t h;
    mublasCreate(&h);
    float a = 1.0f;
    mublasSscal(h, n, &a, x.data_ptr<float>(), 1);
    relu<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="r06_mublas", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  musa_sources=SOURCE, functions=["run"], extra_musa_cflags=["-O3", "--offload-arch=mp_31"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
