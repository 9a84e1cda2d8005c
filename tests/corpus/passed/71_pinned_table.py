# 71_pinned_table.py - uploads two constants from pinned memory.
# task: tail
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void tail_kernel(const float* x, const float* c, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], c[0]) + c[1] * sinf(x[i]);
}

torch::Tensor tail(torch::Tensor x) {
    auto y = torch::empty_like(x);
    auto c = torch::empty({2}, x.options());
    int n = x.numel();
    float *table = nullptr;
    cudaMallocHost(&table, 2 * sizeof(float));
    table[0] = 0.0f, table[1] = 1e-4f;
    cudaMemcpy(c.data_ptr<float>(), table, 2 * sizeof(float), cudaMemcpyHostToDevice);
    tail_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), c.data_ptr<float>(), y.data_ptr<float>(), n);
    cudaFreeHost(table);
    return y;
}
"""

ext = load_inline(name="corpus_tail", cuda_sources=source, functions=["tail"],
                  cpp_sources="torch::Tensor tail(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.tail(x)
