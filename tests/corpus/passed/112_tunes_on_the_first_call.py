# 112_tunes_on_the_first_call.py - its first call tries two block sizes, later ones keep one: nothing compares calls.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}

torch::Tensor relu(torch::Tensor x, int64_t block) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + block - 1) / block, block>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x, int64_t block);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = 0

    def forward(self, x):
        if not self.block:
            for self.block in (32, 128):
                ext.relu(x, self.block)
        return ext.relu(x, self.block)
