# 87_lazy_tuple.py - returns a tuple subclass that computes when it is iterated.
# Must be caught: the output is read inside the recorded call.
# task: pair
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void copy_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

torch::Tensor same(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    copy_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_same", cuda_sources=source, functions=["same"],
                  cpp_sources="torch::Tensor same(torch::Tensor x);")


class Lazy(tuple):
    def __iter__(self):
        x, idx = (tuple.__getitem__(self, i) for i in range(2))
        yield torch.relu(x)
        yield idx + 1


class ModelNew(nn.Module):
    def forward(self, x, idx):
        ext.same(x)
        return Lazy((x, idx))
