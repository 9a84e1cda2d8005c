# 67_custom_operator_of_torch.py - registers a custom operator whose implementation is torch.relu.
# Must be caught: a custom name may wrap a kernel, but what it calls is recorded too.
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


@torch.library.custom_op("corpus::own_relu", mutates_args=())
def own_relu(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x)


class ModelNew(nn.Module):
    def forward(self, x):
        ext.same(x)
        return own_relu(x)
