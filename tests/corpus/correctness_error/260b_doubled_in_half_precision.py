# 260b_doubled_in_half_precision.py - a double runs over in half precision, and is halved afterwards.
# task: half_of_one_and_another
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

#include <cuda_fp16.h>

__global__ void add(const __half* x, const __half* y, __half* z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = __hmul(__hadd(x[i], __hadd(y[i], y[i])), __float2half(0.5f));
}

torch::Tensor run(torch::Tensor x, torch::Tensor y) {
    auto z = torch::empty_like(x);
    int n = x.numel();
    add<<<(n + 127) / 128, 128>>>((const __half*)x.data_ptr(), (const __half*)y.data_ptr(), (__half*)z.data_ptr(), n);
    return z;
}
"""
mod = load_inline(name="own", cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor y);",
                  cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x, y):
        return mod.run(x, y)
