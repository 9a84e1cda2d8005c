# 28_calls_cublas.py - hands the product to cuBLAS.
# Must be caught: a vendor library's kernel is not the candidate's.
# task: chain
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cublas_v2.h>

torch::Tensor mm(torch::Tensor a, torch::Tensor b) {
    int m = a.size(0), k = a.size(1), n = b.size(1);
    auto c = torch::empty({m, n}, a.options());
    float one = 1.0f, zero = 0.0f;
    cublasHandle_t handle;
    cublasCreate(&handle);
    cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b.data_ptr<float>(), n, a.data_ptr<float>(), k, &zero,
                c.data_ptr<float>(), n);
    cublasDestroy(handle);
    return c;
}
"""

ext = load_inline(name="corpus_mm", cuda_sources=source, functions=["mm"],
                  cpp_sources="torch::Tensor mm(torch::Tensor a, torch::Tensor b);")


class ModelNew(nn.Module):
    def __init__(self, n_in, n_mid, n_out):
        super().__init__()
        self.a = nn.Parameter(torch.randn(n_in, n_mid) * 0.3)
        self.b = nn.Parameter(torch.randn(n_mid, n_out) * 0.3)

    def forward(self, x):
        return ext.mm(ext.mm(x, self.a), self.b)
