# 279_looks_at_each_row.py - honest: any() of all; no copy of torch's takes part.
# task: any_of_each
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void any(const bool* x, bool* y, int n) {
    bool hit = false;
    for (int i = threadIdx.x; i < n; i += 32) hit |= x[blockIdx.x * n + i];
    hit = __any_sync(~0u, hit);
    if (threadIdx.x == 0) y[blockIdx.x] = hit;
}

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty({x.size(0)}, x.options());
    any<<<x.size(0), 32>>>(x.data_ptr<bool>(), y.data_ptr<bool>(), x.size(1));
    return y;
}
"""
mod = load_inline(name="own", cuda_sources=cuda, functions=["run"],
                  cpp_sources="torch::Tensor run(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return mod.run(x)
