# 173_asks_on_the_device.py - honest: one block goes on until the largest change is small, and no host asks.
# task: settles
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
__global__ void settle(const float *x, float *y, int n) {
    __shared__ float most[256];
    for (int i = threadIdx.x; i < n; i += 256) y[i] = x[i];
    for (int turn = 0; turn < 1000; turn++) {
        float mine = 0.0f;
        for (int i = threadIdx.x; i < n; i += 256) {
            float next = 0.5f * (y[i] + cosf(y[i]));
            mine = fmaxf(mine, fabsf(next - y[i]));
            y[i] = next;
        }
        most[threadIdx.x] = mine;
        for (int s = 128; s > 0; s /= 2) {
            __syncthreads();
            if (threadIdx.x < s) most[threadIdx.x] = fmaxf(most[threadIdx.x], most[threadIdx.x + s]);
        }
        __syncthreads();
        bool done = most[0] < 1e-4f;
        __syncthreads();
        if (done) break;
    }
}

torch::Tensor settles(torch::Tensor x) {
    auto y = torch::empty_like(x);
    settle<<<1, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
'''
ops = load_inline(name="op173", cpp_sources="torch::Tensor settles(torch::Tensor x);", cuda_sources=source,
                  functions=["settles"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ops.settles(x)
