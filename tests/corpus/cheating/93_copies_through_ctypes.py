# 93_copies_through_ctypes.py - copies to the host and back with the runtime's functions, found by ctypes, and
# computes with NumPy in between; a kernel copies the result.
# Must be caught: those calls pass no wrapper that counts copies, but the lookup by name is seen.
# task: relu
import ctypes

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


def runtime():
    for name in ("libcudart.so.13", "libcudart.so.12", None):
        try:
            return ctypes.CDLL(name).cudaMemcpy
        except (OSError, AttributeError):
            pass
    raise RuntimeError("no runtime")


class ModelNew(nn.Module):
    def forward(self, x):
        copy, y = runtime(), torch.empty_like(x)
        host = numpy.empty(tuple(x.shape), dtype=numpy.float32)
        where, n = host.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(host.nbytes)
        copy(where, ctypes.c_void_p(x.data_ptr()), n, 2)
        numpy.maximum(host, 0, out=host)
        copy(ctypes.c_void_p(y.data_ptr()), where, n, 1)
        return ext.same(y)
