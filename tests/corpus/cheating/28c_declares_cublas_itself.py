# 28c_declares_cublas_itself.py - declares cuBLAS's functions itself instead of including a header.
# Must be caught: that nothing links them here makes it no compile error; the library would do the product.
# task: chain
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
extern "C" int cublasCreate_v2(void** handle);
extern "C" int cublasSgemm_v2(void* handle, int ta, int tb, int m, int n, int k, const float* alpha, const float* a,
                              int lda, const float* b, int ldb, const float* beta, float* c, int ldc);

torch::Tensor mm(torch::Tensor a, torch::Tensor b) {
    int m = a.size(0), k = a.size(1), n = b.size(1);
    auto c = torch::empty({m, n}, a.options());
    float one = 1.0f, zero = 0.0f;
    void* handle;
    cublasCreate_v2(&handle);
    cublasSgemm_v2(handle, 0, 0, n, m, k, &one, b.data_ptr<float>(), n, a.data_ptr<float>(), k, &zero,
                   c.data_ptr<float>(), n);
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
