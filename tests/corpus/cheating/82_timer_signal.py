# 82_timer_signal.py - computes in a signal handler, at a moment that a timer chooses.
# Must be caught: operators are recorded whoever calls them.
# task: relu
import signal
import time

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
"""

ext = load_inline(name="corpus_same", cuda_sources=source, functions=["same"],
                  cpp_sources="torch::Tensor same(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.same(x)
        signal.signal(signal.SIGALRM, lambda *a: y.copy_(x.clamp(min=0)))
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        time.sleep(0.1)
        return y
