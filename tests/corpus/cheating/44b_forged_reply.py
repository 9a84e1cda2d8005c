# 44b_forged_reply.py - sends a reply of its own in the judge's protocol: the right answer by torch, an empty trace, a
# launch count.
# Must be caught: nothing that this process says about itself acquits it.
# task: relu
import sys

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
        ext.relu(x)
        frame, values = sys.modules["frame"], sys.modules["values"]
        host = torch.relu(x.cpu())
        packer = values.Packer()
        tree = packer.tree(host)
        f = sys._getframe()
        while f and not hasattr(f.f_locals.get("self"), "sock"):
            f = f.f_back
        frame.send(f.f_locals["self"].sock, {"op": "result", "output": tree, "on_host": [], "changed": [],
                   "aliases": [], "trace": {}, "launches": {"relu_kernel": 9}, "to_host": 0, "to_device": 0,
                   "library_calls": {}, "findings": []}, packer.parts)
        while True:
            frame.recv(f.f_locals["self"].sock)
