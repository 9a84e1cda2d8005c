# 132_changes_its_buffer_once.py - changes the buffer in its first call alone and goes on with what it finds there.
# Must be caught: every call starts from the task's own buffer, so later calls lack the change.
# task: grows
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void grow_kernel(float* s) { s[threadIdx.x] *= 1.5f; }
__global__ void scale_kernel(const float* x, const float* s, float* y, int n, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * s[i % width];
}

void grow(torch::Tensor s) { grow_kernel<<<1, s.numel()>>>(s.data_ptr<float>()); }

torch::Tensor scale(torch::Tensor x, torch::Tensor s) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    scale_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), s.data_ptr<float>(), y.data_ptr<float>(), n,
                                           (int)s.numel());
    return y;
}
"""
ops = load_inline(name="op132b", cpp_sources="void grow(torch::Tensor s);"
                              "torch::Tensor scale(torch::Tensor x, torch::Tensor s);",
                  cuda_sources=source, functions=["grow", "scale"])


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("scale", torch.ones(n))
        self.changed = False

    def forward(self, x):
        if not self.changed:
            ops.grow(self.scale)
        self.changed = True
        return ops.scale(x, self.scale)
