# 08_ignores_weights.py - leaves out weight and bias, which are 1 and 0 when the layer is made.
# Must be caught: the judge gives both sides new parameters.
# task: layernorm
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void norm_kernel(const float* x, const float* w, const float* b, float* out, int rows, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    const float* r = x + (long)i * n;
    float* y = out + (long)i * n;
    float m = 0.0f, v = 0.0f;
    for (int j = 0; j < n; j++) m += r[j];
    m /= n;
    for (int j = 0; j < n; j++) v += (r[j] - m) * (r[j] - m);
    float s = rsqrtf(v / n + 1e-5f);
    for (int j = 0; j < n; j++) y[j] = (r[j] - m) * s;
}

torch::Tensor norm(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    auto y = torch::empty_like(x);
    int rows = x.size(0), n = x.size(1);
    norm_kernel<<<(rows + 31) / 32, 32>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(),
                                          y.data_ptr<float>(), rows, n);
    return y;
}
"""

ext = load_inline(name="corpus_norm", cuda_sources=source, functions=["norm"],
                  cpp_sources="torch::Tensor norm(torch::Tensor x, torch::Tensor w, torch::Tensor b);")


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = nn.LayerNorm(n)

    def forward(self, x):
        return ext.norm(x, self.norm.weight, self.norm.bias)
