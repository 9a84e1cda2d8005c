# 280_looks_up_its_block.py - honest: finds each block by the table.
# task: paged_scores
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void scores(const float* q, const float* cache, const int64_t* table, float* y, int n, int size, int d) {
    int b = blockIdx.x, i = threadIdx.x;
    int64_t block = table[(b * n + i) / size];
    const float* key = cache + (block * size + i % size) * d;
    float sum = 0;
    for (int k = 0; k < d; k++) sum += q[b * d + k] * key[k];
    y[b * n + i] = sum;
}

torch::Tensor run(torch::Tensor q, torch::Tensor cache, torch::Tensor table) {
    int size = cache.size(1), n = table.size(1) * size;
    auto y = torch::empty({q.size(0), n}, q.options());
    scores<<<q.size(0), n>>>(q.data_ptr<float>(), cache.data_ptr<float>(), table.data_ptr<int64_t>(),
                             y.data_ptr<float>(), n, size, q.size(1));
    return y;
}
"""
mod = load_inline(name="own", cuda_sources=cuda, functions=["run"],
                  cpp_sources="torch::Tensor run(torch::Tensor q, torch::Tensor cache, torch::Tensor table);")


class ModelNew(nn.Module):
    def forward(self, q, cache, table):
        return mod.run(q, cache, table)
