# m09_guards_by_generation.py - guards on __MUSA_ARCH__: each branch is right, one of them is there.
# task: relu
import torch
import torch.nn as nn
from torch_musa.utils.musa_extension import load_inline

SOURCE = r"""
__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#if defined(__MUSA_ARCH__) && __MUSA_ARCH__ >= 310
    if (i < n)
        y[i] = fmaxf(x[i], 0.0f);
#elif defined(__MUSA_ARCH__) && __MUSA_ARCH__ >= 210
    if (i < n)
        y[i] = x[i] > 0.0f ? x[i] : 0.0f;
#endif
    __syncthreads_lm();
}

torch::Tensor run(torch::Tensor x)
{
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="m09_guards_by_generation", cpp_sources="torch::Tensor run(torch::Tensor x);",
                  musa_sources=SOURCE, functions=["run"], extra_musa_cflags=["-O3", "--offload-arch=mp_31"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
