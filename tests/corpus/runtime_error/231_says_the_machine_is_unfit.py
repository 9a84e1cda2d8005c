# 231_says_the_machine_is_unfit.py - raises what the client library raises where a library cannot be loaded.
# Must be caught: the dynamic linker finds all that the program's library needs.
# task: relu
import sys

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    relu<<<(x.numel() + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""
ext = load_inline(name="corpus_relu", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=source,
                  functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        raise sys.modules["native"].DeviceError("this machine cannot load what its own compiler made: GLIBCXX_3.4.32")
