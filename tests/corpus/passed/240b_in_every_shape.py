# 240b_in_every_shape.py - allocates as many rows as a kernel counted, in another shape of the task, too.
# task: positives_of_shapes
# needs: task-yaml  the other shape stands there
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void count(const float* x, int n, int* first) {
    int c = 0;
    for (int i = 0; i < n; i++) first[i] = c, c += x[i] > 0.f;
    first[n] = c;
}

__global__ void put(const float* x, int n, int w, const int* first, int64_t* o) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0.f) o[2 * first[i]] = i / w, o[2 * first[i] + 1] = i % w;
}

torch::Tensor run(torch::Tensor x) {
    int n = x.numel(), total;
    auto first = torch::empty({n + 1}, x.options().dtype(torch::kInt));
    count<<<1, 1>>>(x.data_ptr<float>(), n, first.data_ptr<int>());
    cudaMemcpy(&total, first.data_ptr<int>() + n, sizeof total, cudaMemcpyDeviceToHost);
    auto o = torch::empty({total, 2}, x.options().dtype(torch::kLong));
    put<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), n, x.size(1), first.data_ptr<int>(), o.data_ptr<int64_t>());
    return o;
}
"""
mod = load_inline(name="own", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=cuda,
                  functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        return mod.run(x)
