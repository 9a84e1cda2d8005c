# 18_batch_and_skip.py - looks for the inputs of later calls, to do the work of all calls in the first one.
# Must be caught: an input exists only when its call begins, so there is nothing to find.
# task: relu
import gc

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
    def __init__(self):
        super().__init__()
        self.ready = {}

    def forward(self, x):
        found = [o for o in gc.get_objects() if type(o) is torch.Tensor and o.shape == x.shape and o is not x]
        if len(found) < 3:
            raise RuntimeError(f"no inputs of later calls: {len(found)}")
        self.ready.update((o.data_ptr(), ext.relu(o)) for o in found)
        return self.ready[x.data_ptr()]
