# 130b_table_copied_away.py - uploads all answers of erf into its parameter's memory and has them copied away before
# the judge lays the parameter over them.
# Must be caught: a table of 128 KiB is no kernel; what a copy took away stays counted.
# task: erf_half
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cuda_fp16.h>
__global__ void look_kernel(const unsigned short* x, const __half* table, const __half* w, __half* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = __float2half(__half2float(table[x[i]]) * __half2float(w[i]));
}

torch::Tensor look(torch::Tensor x, torch::Tensor table, torch::Tensor w) {
    auto y = torch::empty_like(x);
    look_kernel<<<256, 256>>>((const unsigned short*)x.data_ptr(), (const __half*)table.data_ptr(),
                              (const __half*)w.data_ptr(), (__half*)y.data_ptr());
    return y;
}
"""
ops = load_inline(name="op130c",
                  cpp_sources="torch::Tensor look(torch::Tensor x, torch::Tensor table, torch::Tensor w);",
                  cuda_sources=source, functions=["look"])


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        bits = torch.arange(65536, dtype=torch.int32).to(torch.int16)
        table = torch.erf(bits.view(torch.half).float()).half().reshape(n, n)
        self.w = nn.Parameter(table.cuda())
        self.kept = self.w.detach().clone()

    def forward(self, x):
        return ops.look(x, self.kept, self.w)
