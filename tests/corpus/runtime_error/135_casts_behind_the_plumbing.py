# 135_casts_behind_the_plumbing.py - its kernel copies; truncation is a cast that it asks the executor for by itself,
# since the plumbing refuses it.
# Must be caught: the executor refuses casts that drop what their type cannot hold, whoever asks.
# task: trunc
import ctypes

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

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["same"],
                  cpp_sources="torch::Tensor same(torch::Tensor x);")


class View(ctypes.Structure):
    _fields_ = [("addr", ctypes.c_uint64), ("dtype", ctypes.c_uint32), ("dims", ctypes.c_uint32),
                ("size", ctypes.c_void_p), ("stride", ctypes.c_void_p)]


def cast(to, to_dtype, source, from_dtype, n):
    from front import core
    size, stride = (ctypes.c_int64 * 1)(n), (ctypes.c_int64 * 1)(1)
    views = [View(t.data_ptr(), d, 1, ctypes.addressof(size), ctypes.addressof(stride))
             for t, d in ((to, to_dtype), (source, from_dtype))]
    lib = core.lib()
    lib.front_client.restype = ctypes.c_void_p
    code = lib.client_strided(ctypes.c_void_p(lib.front_client()), ctypes.byref(views[0]), ctypes.byref(views[1]), 0)
    if code:
        raise RuntimeError("the cast fails: %d" % code)


class ModelNew(nn.Module):
    def forward(self, x):
        n, t, y = x.numel(), ext.same(x), torch.empty_like(x)
        whole = torch.empty(n, dtype=torch.int32, device=x.device)
        cast(whole, 4, t, 8, n)
        cast(y, 8, whole, 4, n)
        return y
