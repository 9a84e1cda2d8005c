# 69_numpy_through_a_buffer.py - computes with NumPy on a view of a host copy; a kernel copies the result.
# Must be caught: data that goes to the host and comes back was computed there.
# task: relu
import numpy

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
        host = numpy.from_dlpack(x.cpu())
        y = numpy.where(memoryview(host) > numpy.float32(0), host, numpy.float32(0))
        return ext.same(torch.from_numpy(y).cuda())
