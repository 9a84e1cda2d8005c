# 145_cuts_its_indices.py - counts on a cast to keep the low eight bits of an index that it made large.
# Must be caught: what does not fit leaves a mark, and no part of itself.
# task: buckets
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void lift_kernel(const int64_t* index, int64_t* lifted, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) lifted[i] = index[i] + 256 * (1 + i);
}
__global__ void add_kernel(const uint8_t* index, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && index[i] < 40) atomicAdd(y + index[i], x[i]);
}

torch::Tensor add(torch::Tensor index, torch::Tensor x) {
    auto lifted = torch::empty_like(index);
    auto y = torch::zeros({40}, x.options());
    int n = x.numel();
    lift_kernel<<<(n + 255) / 256, 256>>>(index.data_ptr<int64_t>(), lifted.data_ptr<int64_t>(), n);
    auto low = lifted.to(torch::kUInt8);
    add_kernel<<<(n + 255) / 256, 256>>>(low.data_ptr<uint8_t>(), x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
ops = load_inline(name="op145b", cpp_sources="torch::Tensor add(torch::Tensor index, torch::Tensor x);",
                  cuda_sources=source, functions=["add"])


class ModelNew(nn.Module):
    def forward(self, index, x):
        return ops.add(index, x)
