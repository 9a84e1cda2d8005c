# 81_dispatch_mode_left_on.py - leaves a dispatch mode on that computes whenever the harness touches a tensor.
# Must be caught: the harness's copies go around the dispatcher, and a mode left on is seen.
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

from torch.utils._python_dispatch import TorchDispatchMode


class Late(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and out.is_floating_point() and out.device.type == "cpu":
            return torch.relu(out)
        return out


class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.same(x)
        Late().__enter__()
        return y
