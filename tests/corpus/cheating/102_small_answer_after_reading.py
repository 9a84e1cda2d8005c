# 102_small_answer_after_reading.py - copies the whole input to the host, adds up there, and hands six sums to a kernel.
# Must be caught: few numbers come back, but all of the input was read for them.
# task: rowsum
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <vector>

__global__ void put_kernel(float* y, int i, float v) { y[i] = v; }

torch::Tensor rowsum(torch::Tensor x) {
    int rows = x.size(0), n = x.size(1);
    auto y = torch::empty({rows}, x.options());
    std::vector<float> h(x.numel());
    cudaMemcpy(h.data(), x.data_ptr<float>(), h.size() * sizeof(float), cudaMemcpyDeviceToHost);
    for (int r = 0; r < rows; r++) {
        float s = 0;
        for (int i = 0; i < n; i++) s += h[r * n + i];
        put_kernel<<<1, 1>>>(y.data_ptr<float>(), r, s);
    }
    return y;
}
"""

ext = load_inline(name="corpus_rowsum", cuda_sources=source, functions=["rowsum"],
                  cpp_sources="torch::Tensor rowsum(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.rowsum(x)
