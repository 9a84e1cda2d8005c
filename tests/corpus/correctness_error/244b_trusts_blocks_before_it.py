# 244b_trusts_blocks_before_it.py - trusts that the blocks of lower index are done.
# task: running_sums
# backends: sim
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// A block sums a part of a row, behind the blocks that sum the parts before it.
__global__ void add(const float* x, float* y, int n, int* state, volatile float* sum) {
    int row = blockIdx.x, *begun = state + 2 * row, *done = begun + 1;
    int part = blockIdx.y;
    __threadfence();
    float s = part ? sum[row] : 0.f;
    for (int i = part * 40; i < min(n, part * 40 + 40); i++) y[row * n + i] = s += x[row * n + i];
    sum[row] = s;
    __threadfence();
    atomicAdd(done, 1);
}

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x), sum = torch::zeros({x.size(0)}, x.options());
    auto state = torch::zeros({x.size(0), 2}, x.options().dtype(torch::kInt));
    int n = x.size(1);
    add<<<dim3(x.size(0), (n + 39) / 40), 1>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, state.data_ptr<int>(),
                                               sum.data_ptr<float>());
    return y;
}
"""
mod = load_inline(name="own", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        return mod.run(x)
