# r05_hexp2_on_s4000.py - hexp2, which mp_22 lacks.
# task: relu
# expect: compile_error
# says: hexp2
# profile: s4000
import torch
import torch.nn as nn
from torch_musa.utils.musa_extension import load_inline

SOURCE = r"""
#include <musa_fp16.h>
__device__ __half two(__half x) { return hexp2(x); }

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

    relu<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="r05_hexp2_on_s4000", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  musa_sources=SOURCE, functions=["run"], extra_musa_cflags=["-O3", "--offload-arch=mp_31"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
