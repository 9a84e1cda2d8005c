# 122_casts_after_another_view.py - reads the input's bits as whole numbers by a view, and lets torch's cast make
# numbers of them; its own kernel copies.
# Must be caught: a cast reads values as the type that they have.
# task: bits
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void copy_kernel(const double* x, double* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

torch::Tensor same(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    copy_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<double>(), y.data_ptr<double>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["same"],
                  cpp_sources="torch::Tensor same(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.same(x.view(torch.int32).to(torch.float64))
