# 37_thread_that_launches_later.py - returns an empty tensor at once; a thread fills it after the clock has stopped.
# Must be caught: the output is read when forward returns.
# task: relu
import threading
import time

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
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
        y = torch.empty_like(x)
        ext.relu(x[:1].contiguous())

        def late():
            time.sleep(1.0)
            y.copy_(ext.relu(x))

        threading.Thread(target=late, daemon=True).start()
        return y
