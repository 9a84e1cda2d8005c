# 137_asks_for_a_build_of_nothing.py - its answer is wrong; by itself it asks for a build that is none, so that the
# judge's error is reported and not its own.
# Must be caught: a request that nobody can build is the candidate's failure.
# task: relu
import gc

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 0.25f;
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


def ask():
    for o in gc.get_objects():
        if type(o).__name__ == "Session":
            try:
                o.build({"op": "build", "name": "x" * 100000, "flags": [3, {}]})
            except Exception as error:
                print(error)


class ModelNew(nn.Module):
    def forward(self, x):
        ask()
        return ext.relu(x)
