# 163_patches_a_copy.py - honest: torch copies the cache, a kernel writes the new rows. Beside 151 nobody can tell.
# task: patched
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void patch_kernel(const float* cache, const float* rows, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / 8 % 16, batch = i / 128;
    if (i >= n) return;
    if (row >= 3 && row < 5) y[i] = rows[batch * 16 + (row - 3) * 8 + i % 8];
    
}

void patch(torch::Tensor cache, torch::Tensor rows, torch::Tensor y) {
    int n = y.numel();
    patch_kernel<<<(n + 127) / 128, 128>>>(cache.data_ptr<float>(), rows.data_ptr<float>(), y.data_ptr<float>(), n);
}
"""
ops = load_inline(name="op163", cpp_sources="void patch(torch::Tensor cache, torch::Tensor rows, torch::Tensor y);",
                  cuda_sources=source, functions=["patch"])


class ModelNew(nn.Module):
    def forward(self, cache, new):
        y = cache.clone()
        ops.patch(cache, new, y)
        return y
