# 80_profile_hook.py - installs a profile function that computes while the harness's own code runs.
# Must be caught: operators are recorded then too, and the hook is seen.
# task: relu
import sys

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
        me = []

        def hook(frame, event, arg):
            if event == "call" and not me:
                me.append(1)
                y.copy_(torch.relu(x))

        sys.setprofile(hook)
        return y
