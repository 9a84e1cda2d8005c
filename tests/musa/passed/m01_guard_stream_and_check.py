# m01_guard_stream_and_check.py - guard, current stream and launch check, as torch_musa's documents write it.
# task: relu
import torch
import torch.nn as nn
from torch_musa.utils.musa_extension import load_inline

SOURCE = r"""
#include "torch_musa/csrc/core/MUSAStream.h"
#include "torch_musa/csrc/core/MUSAGuard.h"
#include "torch_musa/csrc/core/MUSAException.h"

__global__ void relu(const float *__restrict__ x, float *__restrict__ y, size_t n)
{
    size_t step = (size_t)blockDim.x * gridDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        y[i] = fmaxf(x[i], 0.0f);
}

torch::Tensor run(torch::Tensor x)
{
    TORCH_CHECK(x.is_privateuseone() && x.is_contiguous(), "a contiguous MUSA tensor");
    c10::musa::MUSAGuard guard(x.device());
    auto y = torch::empty_like(x);
    relu<<<16, 128, 0, c10::musa::getCurrentMUSAStream()>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    C10_MUSA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

ext = load_inline(name="m01_guard_stream_and_check", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  musa_sources=SOURCE, functions=["run"], extra_musa_cflags=["-O3", "--offload-arch=mp_31"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
