# 92_cublas_through_ctypes.py - finds cuBLAS, which torch has loaded, with ctypes and lets it do one product;
# the other one is a kernel's, so that the answer needs launches.
# Must be caught: no extension refers to cuBLAS, no operator of torch runs; the lookup by name is seen.
# task: chain
# backends: cuda
import ctypes

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void mm_kernel(const float* a, const float* b, float* c, int m, int k, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n) return;
    float sum = 0.0f;
    for (int j = 0; j < k; j++) sum += a[i / n * k + j] * b[j * n + i % n];
    c[i] = sum;
}

torch::Tensor mm(torch::Tensor a, torch::Tensor b) {
    int m = a.size(0), k = a.size(1), n = b.size(1);
    auto c = torch::empty({m, n}, a.options());
    mm_kernel<<<(m * n + 255) / 256, 256>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), m, k, n);
    return c;
}
"""

ext = load_inline(name="corpus_mm", cuda_sources=source, functions=["mm"],
                  cpp_sources="torch::Tensor mm(torch::Tensor a, torch::Tensor b);")


def cublas_mm(a, b):
    lib, handle = ctypes.CDLL("libcublas.so.13"), ctypes.c_void_p()
    lib.cublasCreate_v2(ctypes.byref(handle))
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, device=a.device)
    one, zero, p = ctypes.c_float(1), ctypes.c_float(0), ctypes.c_void_p
    lib.cublasSgemm_v2(handle, 0, 0, n, m, k, ctypes.byref(one), p(b.data_ptr()), n, p(a.data_ptr()), k,
                       ctypes.byref(zero), p(c.data_ptr()), n)
    return c


class ModelNew(nn.Module):
    def __init__(self, n_in, n_mid, n_out):
        super().__init__()
        self.a = nn.Parameter(torch.randn(n_in, n_mid) * 0.3)
        self.b = nn.Parameter(torch.randn(n_mid, n_out) * 0.3)

    def forward(self, x):
        return ext.mm(cublas_mm(x, self.a), self.b)
