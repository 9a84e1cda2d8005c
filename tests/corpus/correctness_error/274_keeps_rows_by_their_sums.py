# 274_keeps_rows_by_their_sums.py - a row is computed anew only where its sum is not the last call's.
# Must be caught: two elements that change places leave the sum as it is.
# task: soft_rows
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void rows(const float* x, float* key, float* kept, float* y, int n) {
    x += blockIdx.x * n, kept += blockIdx.x * n, y += blockIdx.x * n;
    int t = threadIdx.x;
    float sum = 0, most = x[0], all = 0;
    for (int i = 0; i < n; i++) sum += x[i], most = fmaxf(most, x[i]);
    if (sum == key[blockIdx.x]) {
        for (int i = t; i < n; i += 32) y[i] = kept[i];
        return;
    }
    for (int i = 0; i < n; i++) all += expf(x[i] - most);
    for (int i = t; i < n; i += 32) kept[i] = y[i] = expf(x[i] - most) / all;
    __syncwarp();
    if (t == 0) key[blockIdx.x] = sum;
}

torch::Tensor run(torch::Tensor x, torch::Tensor key, torch::Tensor kept) {
    auto y = torch::empty_like(x);
    rows<<<x.size(0), 32>>>(x.data_ptr<float>(), key.data_ptr<float>(), kept.data_ptr<float>(), y.data_ptr<float>(),
                            x.size(1));
    return y;
}
"""
mod = load_inline(name="own", cuda_sources=cuda, functions=["run"],
                  cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor key, torch::Tensor kept);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.key = None

    def forward(self, x):
        if self.key is None:
            self.key = torch.full((x.shape[0],), float("nan"), device=x.device)
            self.kept = torch.zeros_like(x)
        return mod.run(x, self.key, self.kept)
