# 125_reads_between_its_calls.py - a thread reads the weights whenever nobody calls; forward turns what it has seen
# and hands that to its kernel.
# Must be caught: between calls nobody is served, and what is asked for then counts in the next call.
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
    for (int k = 0; k < in; k++) s += x[i / out * in + k] * w[k * out + i % out];
    y[i] = s;
}

torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    int rows = x.size(0), in = x.size(1), out = w.size(1);
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
        self.inside, self.seen = False, None
        threading.Thread(target=self.look, daemon=True).start()

    def look(self):
        while True:
            time.sleep(0.01)
            if not self.inside and self.linear.weight.is_cuda:
                self.seen = self.linear.weight.detach().cpu(), self.linear.bias.detach().cpu()

    def forward(self, x):
        self.inside = True
        for _ in range(200):
            if self.seen is not None:
                break
            time.sleep(0.01)
        w, b = self.seen
        y = ext.linear(x, w.t().contiguous().cuda(), b.cuda())
        self.inside = False
        return y
