# 98_overrides_an_operator_of_torch.py - gives aten::clone a kernel of its own, which is torch.relu.
# Must be caught: operators inside of an allowed one are counted too.
# task: relu
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


library = torch.library.Library("aten", "IMPL")
library.impl("clone", lambda x, memory_format=None: torch.relu(x), "CUDA")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.same(x.clone())
