# r07_mudnn.py - muDNN does the arithmetic.
# task: relu
# expect: cheating
# says: mudnn
import torch
import torch.nn as nn
from torch_musa.utils.musa_extension import load_inline

SOURCE = r"""
#include <mudnn.h>

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
    musa::dnn::Handle h;
    musa::dnn::Tensor a, b;
    musa::dnn::Unary op;
    op.Run(h, b, a);
    relu<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="r07_mudnn", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  musa_sources=SOURCE, functions=["run"], extra_musa_cflags=["-O3", "--offload-arch=mp_31"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
