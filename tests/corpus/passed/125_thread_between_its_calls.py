# 125_thread_between_its_calls.py - a thread counts time while nobody calls; it asks the device for nothing.
# task: linear
import threading
import time

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void linear_kernel(const float* x, const float* w, const float* b, float* y, int rows, int in, int out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * out) return;
    float s = b[i % out];
    for (int k = 0; k < in; k++) s += x[i / out * in + k] * w[i % out * in + k];
    y[i] = s;
}

torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    int rows = x.size(0), in = x.size(1), out = w.size(0);
    auto y = torch::empty({rows, out}, x.options());
    linear_kernel<<<(rows * out + 127) / 128, 128>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(),
                                                     y.data_ptr<float>(), rows, in, out);
    return y;
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["linear"],
                  cpp_sources="torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b);")


class ModelNew(nn.Module):
    def __init__(self, *args):
        super().__init__()
        self.linear = nn.Linear(*args)
        self.ticks = 0
        threading.Thread(target=self.count, daemon=True).start()

    def count(self):
        while self.ticks < 1000:
            time.sleep(0.01)
            self.ticks += 1

    def forward(self, x):
        return ext.linear(x, self.linear.weight, self.linear.bias)
