# 110_asks_below_the_listener.py - names the CPU's kernel of an operator itself, below whatever listens to the device's.
# Must be caught: no value of the device is where the CPU's kernel looks for it.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void copy_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

torch::Tensor copy(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    copy_kernel<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_copy", cuda_sources=source, functions=["copy"],
                  cpp_sources="torch::Tensor copy(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.copy(x)
        return torch.ops.aten.relu.default._op_dk(torch._C.DispatchKey.CPU, y)
