# 115_calls_the_host_from_a_kernel.py - hands its kernel the address of a Python function, which computes.
# Must be caught: kernels run in another process, where there is no such address.
# task: relu
# backends: sim
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline
import ctypes

source = r"""
typedef double (*function)(double);

__global__ void apply_kernel(const float* x, float* y, int n, function f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = (float)f((double)x[i]);
}

torch::Tensor apply(torch::Tensor x, int64_t f) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    apply_kernel<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, (function)f);
    return y;
}
"""

ext = load_inline(name="corpus_apply", cuda_sources=source, functions=["apply"],
                  cpp_sources="torch::Tensor apply(torch::Tensor x, int64_t f);")


callback = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda v: max(v, 0.0))


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.apply(x, ctypes.cast(callback, ctypes.c_void_p).value)
