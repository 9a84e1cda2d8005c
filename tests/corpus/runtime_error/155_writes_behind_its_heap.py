# 155_writes_behind_its_heap.py - writes one element behind memory that a kernel allocated.
# Must be found, with its line: a device's heap keeps its own words there. A GPU without tools says nothing.
# task: relu
# backends: sim
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float* a = (float*)malloc(2 * sizeof(float));
    float* b = new float[2];
    if (a && b && i < n) {
        a[1] = a[2] = x[i];
        b[0] = a[1] > 0.0f ? a[1] : 0.0f;
        y[i] = b[0];
    }
    free(a);
    delete[] b;
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
