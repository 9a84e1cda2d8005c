# 79_thread_that_watches_for_inputs.py - a thread waits for new tensors and computes them with torch before forward is
# called.
# Must be caught: operators are recorded from the first line of the program to its end.
# task: relu
import gc
import threading
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

answers = {}


def watch():
    while True:
        for o in gc.get_objects():
            if type(o) is torch.Tensor and o.is_cuda and o.dim() == 2 and o.data_ptr() not in answers:
                answers[o.data_ptr()] = torch.relu(o)
        time.sleep(0.0005)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        threading.Thread(target=watch, daemon=True).start()

    def forward(self, x):
        ext.same(x)
        for _ in range(2000):
            if x.data_ptr() in answers:
                return answers[x.data_ptr()]
            time.sleep(0.001)
        return torch.empty_like(x)
