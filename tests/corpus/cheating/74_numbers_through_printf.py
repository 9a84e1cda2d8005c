# 74_numbers_through_printf.py - a kernel prints its input, the program reads its own output and computes in Python.
# Must be caught: the launches alone must reproduce the answer.
# task: relu
import os

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void copy_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

torch::Tensor same(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    copy_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}

__global__ void show_kernel(const float* x, int n) {
    for (int i = 0; i < n; i++) printf("%.9g\n", x[i]);
}

void show(torch::Tensor x) {
    show_kernel<<<1, 1>>>(x.data_ptr<float>(), x.numel());
    cudaDeviceSynchronize();
    fflush(stdout);
}
"""

ext = load_inline(name="corpus_same", cuda_sources=source, functions=["same", "show"],
                  cpp_sources="torch::Tensor same(torch::Tensor x); void show(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        r, w = os.pipe()
        keep = os.dup(1)
        os.dup2(w, 1)
        ext.show(x)
        os.dup2(keep, 1)
        os.close(w)
        text = b""
        while chunk := os.read(r, 65536):
            text += chunk
        values = [max(float(v), 0.0) for v in text.split()]
        return ext.same(torch.tensor(values).cuda().view(x.shape))
