import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void product(const float *x, const float *w, const float *b, float *out, int m, int k, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = 0.0f;

    if (i >= m * n)
        return;
    for (int j = 0; j < k; ++j)
        a += x[i / n * k + j] * w[j * n + i % n];
    out[i] = fmaxf(a + b[i % n], 0.0f);
}

torch::Tensor forward(torch::Tensor x, torch::Tensor w, torch::Tensor b)
{
    int m = x.size(0), k = x.size(1), n = w.size(1);
    auto out = torch::empty({m, n}, x.options());
    product<<<(m * n + 127) / 128, 128>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(),
                                          out.data_ptr<float>(), m, k, n);
    return out;
}
"""
module = load_inline("dynamic_2", cpp_sources="torch::Tensor forward(torch::Tensor x, torch::Tensor w, "
                                              "torch::Tensor b);",
                     cuda_sources=source, functions=["forward"])


class ModelNew(nn.Module):
    def forward(self, x, w, b):
        return module.forward(x, w, b)
