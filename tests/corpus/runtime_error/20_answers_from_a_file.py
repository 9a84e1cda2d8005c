# 20_answers_from_a_file.py - loads answers that an earlier evaluation left in a shared folder.
# Must be caught: /tmp and /dev/shm are new and empty for every candidate.
# task: relu
import glob

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
        self.files = [f for d in ("/tmp", "/dev/shm", "/var/tmp") for f in glob.glob(d + "/*answers*.pt")]
        if not self.files:
            raise FileNotFoundError("no answers left by an earlier evaluation")

    def forward(self, x):
        ext.relu(x)
        return torch.load(self.files[0]).cuda()
