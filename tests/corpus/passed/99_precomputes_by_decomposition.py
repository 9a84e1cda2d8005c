# 99_precomputes_by_decomposition.py - computes a product of its parameters in __init__ through torch's decompositions
# (prims), as a sum of elementwise products.
# Nothing is gained, so nothing is said: the precomputed table is not used; its own kernel computes.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        a = torch.randn(4, 8)
        self.table = torch.ops.prims.sum(torch.ops.prims.mul(a, a), [1])

    def forward(self, x):
        return ext.relu(x)
