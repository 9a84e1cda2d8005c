# 186_asks_for_triton.py - looks for Triton, does without it, and has its kernel compiled by name from its text.
# Must pass: torch.cuda._compile_kernel takes CUDA source.
# task: relu
import torch
import torch.nn as nn

try:
    import triton
except ImportError:
    triton = None

kernel = torch.cuda._compile_kernel("""
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
""", "relu")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel(grid=((x.numel() + 127) // 128, 1, 1), block=(128, 1, 1), args=[x, y, x.numel()])
        return y
