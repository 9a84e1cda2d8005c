# 81b_parameters_made_in_inference_mode.py - makes its parameters, a buffer and its result in inference mode.
# task: linear
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void linear_kernel(const float* x, const float* w, const float* b, float* y, int m, int k, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n) return;
    float sum = b[i % n];
    for (int j = 0; j < k; j++) sum += x[i / n * k + j] * w[i % n * k + j];
    y[i] = sum;
}

torch::Tensor fc(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    int m = x.size(0), k = x.size(1), n = w.size(0);
    auto y = torch::empty({m, n}, x.options());
    linear_kernel<<<(m * n + 255) / 256, 256>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(),
                                                y.data_ptr<float>(), m, k, n);
    return y;
}
"""

ext = load_inline(name="corpus_fc", cuda_sources=source, functions=["fc"],
                  cpp_sources="torch::Tensor fc(torch::Tensor x, torch::Tensor w, torch::Tensor b);")


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        with torch.inference_mode():
            self.fc = nn.Linear(n_in, n_out)

    @torch.inference_mode()
    def forward(self, x):
        return ext.fc(x, self.fc.weight, self.fc.bias)
