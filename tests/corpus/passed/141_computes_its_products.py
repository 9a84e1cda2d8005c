# 141_computes_its_products.py - the honest twin: computes.
# task: gram
# options: --protocol kernelbench --trials 5
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void gram_kernel(const float* x, float* y, int n, int width) {
    float v = 0;
    for (int i = 0; i < width; i++) v += x[blockIdx.x * width + i] * x[threadIdx.x * width + i];
    y[blockIdx.x * n + threadIdx.x] = tanhf(v / 7);
}

torch::Tensor gram(torch::Tensor x) {
    int n = x.size(0);
    auto y = torch::empty({n, n}, x.options());
    gram_kernel<<<n, n>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, (int)x.size(1));
    return y;
}
"""
ops = load_inline(name="op141b", cpp_sources="torch::Tensor gram(torch::Tensor x);", cuda_sources=source,
                  functions=["gram"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ops.gram(x)
