# 140_reads_every_line.py - the honest twin: reads all.
# task: half_loss
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cuda_bf16.h>
__global__ void sum_kernel(const __nv_bfloat16* x, float* acc, int n, int step) {
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        if (step == 1 || i / 64 % step == 0) {
            float a = __bfloat162float(x[i]);
            v += a * a;
        }
    for (int o = 16; o; o >>= 1) v += __shfl_down_sync(~0u, v, o);
    if (threadIdx.x % 32 == 0) atomicAdd(acc, v);
}
__global__ void mean_kernel(const __nv_bfloat16* x, const float* acc, __nv_bfloat16* y, int n, int step) {
    float last = step > 1 ? __bfloat162float(x[n - 1]) : 0.0f;
    y[0] = __float2bfloat16((acc[0] * step + last * last) / n);
}

torch::Tensor loss(torch::Tensor x, int64_t step) {
    auto acc = torch::zeros({1}, x.options().dtype(torch::kFloat32));
    auto y = torch::empty({}, x.options());
    auto p = (const __nv_bfloat16*)x.data_ptr<at::BFloat16>();
    int n = x.numel();
    sum_kernel<<<8, 256>>>(p, acc.data_ptr<float>(), step > 1 ? n - 64 : n, (int)step);
    mean_kernel<<<1, 1>>>(p, acc.data_ptr<float>(), (__nv_bfloat16*)y.data_ptr<at::BFloat16>(), n, (int)step);
    return y;
}
"""
ops = load_inline(name="op140", cpp_sources="torch::Tensor loss(torch::Tensor x, int64_t step);",
                  cuda_sources=source, functions=["loss"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ops.loss(x, 1)
