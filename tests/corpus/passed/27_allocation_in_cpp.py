# 27_allocation_in_cpp.py - at::empty and at::zeros in C++, nothing that computes.
# task: linear
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void fc_kernel(const float* x, const float* w, const float* b, float* y, int m, int k, int n) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (j >= n) return;
    float s = b[j];
    for (int t = 0; t < k; t++) s += x[i * k + t] * w[j * k + t];
    y[i * n + j] = s;
}

torch::Tensor fc(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    x = x.contiguous();
    int m = x.size(0), k = x.size(1), n = w.size(0);
    auto y = at::zeros({m, n}, x.options());
    fc_kernel<<<dim3((n + 31) / 32, m), 32>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(),
                                              y.data_ptr<float>(), m, k, n);
    return y;
}
"""

ext = load_inline(name="corpus_fc", cuda_sources=source, functions=["fc"],
                  cpp_sources="torch::Tensor fc(torch::Tensor x, torch::Tensor w, torch::Tensor b);")


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)

    def forward(self, x):
        return ext.fc(x, self.fc.weight, self.fc.bias)
