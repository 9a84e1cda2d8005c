# 35_generated_source.py - fills a template for its source and binds forward with exec.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

template = r"""
__global__ void OP_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

torch::Tensor OP(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    OP_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
ext = load_inline(name="corpus_relu", cpp_sources="torch::Tensor relu(torch::Tensor x);",
                  cuda_sources=template.replace("OP", "relu"), functions=["relu"])
names = {"ext": ext}
exec("def forward(self, x):\n    return ext.relu(x)\n", names)


class ModelNew(nn.Module):
    forward = names["forward"]
