# 252_reduces_a_struct.py - cooperative groups reduce a struct by a function that is to be inlined.
# task: rowsum
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

struct alignas(8) Part {
    float sum;
    int n;
};
__device__ __forceinline__ Part joined(Part a, Part b) { return {a.sum + b.sum, a.n + b.n}; }

__global__ void add(const float* x, float* y, int n) {
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
    Part part = {0.f, 0};
    for (int i = warp.thread_rank(); i < n; i += warp.size()) part = joined(part, {x[blockIdx.x * n + i], 1});
    Part all = cg::reduce(warp, part, joined);
    if (warp.thread_rank() == 0 && all.n == n) y[blockIdx.x] = all.sum;
}

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty({x.size(0)}, x.options());
    add<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
"""
mod = load_inline(name="own", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        return mod.run(x)
