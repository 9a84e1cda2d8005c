# 278_ends_when_all_are_reached.py - honest: as many steps as there are nodes.
# task: hops
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void search(const bool* adj, int64_t* hops, int n, int steps) {
    int i = threadIdx.x;
    hops[i] = i == 0 ? 0 : -1;
    for (int step = 1; step <= steps; step++) {
        __syncthreads();
        bool reached = false;
        if (hops[i] < 0)
            for (int k = 0; k < n; k++) reached |= hops[k] == step - 1 && adj[k * n + i];
        __syncthreads();
        if (reached) hops[i] = step;
    }
}

torch::Tensor run(torch::Tensor adj) {
    int n = adj.size(0);
    auto hops = torch::empty({n}, adj.options().dtype(torch::kLong));
    search<<<1, n>>>(adj.data_ptr<bool>(), hops.data_ptr<int64_t>(), n, n - 1);
    return hops;
}
"""
mod = load_inline(name="own", cuda_sources=cuda, functions=["run"],
                  cpp_sources="torch::Tensor run(torch::Tensor adj);")


class ModelNew(nn.Module):
    def forward(self, adj):
        return mod.run(adj)
