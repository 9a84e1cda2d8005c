# 145_casts_its_indices.py - hands its kernel indices of 32 bits: each value is kept.
# task: buckets
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void add_kernel(const int* index, const float* x, float* y, int n) {
    __shared__ float own[40];
    for (int i = threadIdx.x; i < 40; i += blockDim.x) own[i] = 0.0f;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&own[index[i]], x[i]);
    __syncthreads();
    for (int i = threadIdx.x; i < 40; i += blockDim.x) atomicAdd(y + i, own[i]);
}

torch::Tensor add(torch::Tensor index, torch::Tensor x) {
    auto narrow = index.to(torch::kInt32);
    auto y = torch::zeros({40}, x.options());
    int n = x.numel();
    add_kernel<<<(n + 255) / 256, 256>>>(narrow.data_ptr<int>(), x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
ops = load_inline(name="op145", cpp_sources="torch::Tensor add(torch::Tensor index, torch::Tensor x);",
                  cuda_sources=source, functions=["add"])


class ModelNew(nn.Module):
    def forward(self, index, x):
        return ops.add(index, x)
