# 101_jiterator.py - lets torch write the loop around an expression (torch.cuda.jiterator); a kernel copies the
# result.
# Must be caught: such a kernel is torch's, passes no wrapper and no dispatcher.
# task: relu
# backends: cuda
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


relu = torch.cuda.jiterator._create_jit_fn("template <typename T> T relu(T x) { return x > T(0) ? x : T(0); }")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.same(relu(x))
