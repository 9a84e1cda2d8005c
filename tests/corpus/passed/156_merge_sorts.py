# 156_merge_sorts.py - sorts pairs by block and by warp and writes each value at its index; NaN if out of order.
# task: relu
# backends: sim
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cub/cub.cuh>
struct Less {
    __device__ bool operator()(float a, float b) const { return a < b; }
};
#define ITEMS 2
__global__ void by_sorting(const float* x, float* y, int n, int warps) {
    using Block = cub::BlockMergeSort<float, 64, ITEMS, int>;
    using Warp = cub::WarpMergeSort<float, ITEMS, 32, int>;
    __shared__ typename Block::TempStorage block;
    __shared__ typename Warp::TempStorage warp[2];
    int base = blockIdx.x * 64 * ITEMS, first = threadIdx.x * ITEMS, at[ITEMS];
    int valid = n - base < 64 * ITEMS ? n - base : 64 * ITEMS;
    float v[ITEMS];
    for (int i = 0; i < ITEMS; i++) {
        at[i] = base + first + i;
        v[i] = at[i] < n ? x[at[i]] : 1e30f;
    }
    if (warps)
        Warp(warp[threadIdx.x / 32]).Sort(v, at, Less());
    else
        Block(block).StableSort(v, at, Less(), valid, 1e30f);
    for (int i = 0; i < ITEMS; i++)
        if (at[i] < n)
            y[at[i]] = i && v[i] < v[i - 1] ? nanf("") : fmaxf(v[i], 0.0f);
}

void relu_sorted(torch::Tensor x, torch::Tensor y) {
    int n = x.numel(), half = n / 2 / 128 * 128;
    if (half)
        by_sorting<<<half / 128, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), half, 1);
    by_sorting<<<(n - half + 127) / 128, 64>>>(x.data_ptr<float>() + half, y.data_ptr<float>() + half, n - half, 0);
}
"""

ext = load_inline(name="corpus_relu_sorted", cuda_sources=source, functions=["relu_sorted"],
                  cpp_sources="void relu_sorted(torch::Tensor x, torch::Tensor y);")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        ext.relu_sorted(x.contiguous(), y)
        return y
