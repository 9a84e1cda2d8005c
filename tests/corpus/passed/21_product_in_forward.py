# 21_product_in_forward.py - the same product, made from the weights of the day.
# task: chain
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void mm_kernel(const float* a, const float* b, float* c, int m, int k, int n) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (j >= n) return;
    float s = 0.0f;
    for (int t = 0; t < k; t++) s += a[i * k + t] * b[t * n + j];
    c[i * n + j] = s;
}

torch::Tensor mm(torch::Tensor a, torch::Tensor b) {
    int m = a.size(0), k = a.size(1), n = b.size(1);
    auto c = torch::empty({m, n}, a.options());
    mm_kernel<<<dim3((n + 31) / 32, m), 32>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), m, k, n);
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
        return ext.mm(x, ext.mm(self.a, self.b))
