# 243_forks_and_joins.py - lets a stream of its own wait for the current one, and the other way.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void relu(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.f);
}

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel(), half = n / 2, rest = n - half;
    cudaStream_t side;
    cudaEvent_t begun, done;
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&begun, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    cudaEventRecord(begun, 0), cudaStreamWaitEvent(side, begun, 0);
    relu<<<(half + 127) / 128, 128, 0, side>>>(x.data_ptr<float>(), y.data_ptr<float>(), half);
    relu<<<(rest + 127) / 128, 128>>>(x.data_ptr<float>() + half, y.data_ptr<float>() + half, rest);
    cudaEventRecord(done, side);
    cudaStreamWaitEvent(0, done, 0);
    cudaEventDestroy(begun), cudaEventDestroy(done), cudaStreamDestroy(side);
    return y;
}
"""
mod = load_inline(name="own", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        return mod.run(x)
