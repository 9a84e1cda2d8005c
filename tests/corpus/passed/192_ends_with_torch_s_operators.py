# 192_ends_with_torch_s_operators.py - a kernel, and then torch's operators on its result.
# Must pass under the published protocol, whose code runs them; legality beside it names them.
# task: relu
# options: --protocol kernelbench
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void k(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
torch::Tensor go(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    k<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["go"],
                  cpp_sources="torch::Tensor go(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return (ext.go(x) * 2.0 + 1.0 - 1.0) / 2.0
