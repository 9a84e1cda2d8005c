# 251_function_by_its_symbol.py - the host reads a function's address from a variable that no kernel names.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>

typedef float (*function)(float);
__device__ float relu(float v) { return fmaxf(v, 0.f); }
__device__ function chosen = relu;

__global__ void apply(const float* x, float* y, int n, function f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = f(x[i]);
}

torch::Tensor run(torch::Tensor x) {
    static function f = nullptr;
    if (!f) cudaMemcpyFromSymbol(&f, chosen, sizeof f);
    auto y = torch::empty_like(x);
    int n = x.numel();
    apply<<<(n + 63) / 64, 64, 0, torch::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), y.data_ptr<float>(), n,
                                                                        f);
    return y;
}
"""
mod = load_inline(name="own", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        return mod.run(x)
