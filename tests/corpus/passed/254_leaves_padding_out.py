# 254_leaves_padding_out.py - ids that are padding give zeros.
# task: padded_ids
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void look_up(const long* ids, const float* table, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = ids[i / 8] == 0 ? 0.f : table[ids[i / 8] * 8 + i % 8];
}

torch::Tensor run(torch::Tensor ids, torch::Tensor table) {
    auto y = torch::empty({ids.size(0), ids.size(1), 8}, table.options());
    int n = y.numel();
    look_up<<<(n + 63) / 64, 64>>>((const long*)ids.data_ptr<int64_t>(), table.data_ptr<float>(), y.data_ptr<float>(),
                                   n);
    return y;
}
"""
mod = load_inline(name="own", cpp_sources="torch::Tensor run(torch::Tensor ids, torch::Tensor table);",
                  cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(30, 8))

    def forward(self, ids):
        return mod.run(ids, self.table)
