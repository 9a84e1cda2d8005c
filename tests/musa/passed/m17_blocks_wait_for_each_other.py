# m17_blocks_wait_for_each_other.py - one cooperative launch through a cast pointer: all blocks put down a part, wait
# for each other, and take another one's.
# task: relu
# profile: s5000
import torch
import torch.nn as nn
from torch_musa.utils.musa_extension import load_inline

source = r"""
#include <cooperative_groups.h>
__global__ void shift_then_clip(const float* x, float* t, float* y, int n) {
    int first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    for (int i = first; i < n; i += step)
        t[n - 1 - i] = x[i];
    cooperative_groups::this_grid().sync();
    for (int i = first; i < n; i += step)
        y[i] = t[n - 1 - i] > 0.0f ? t[n - 1 - i] : 0.0f;
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x), t = torch::empty_like(x);
    const float* a = x.data_ptr<float>();
    float *b = t.data_ptr<float>(), *c = y.data_ptr<float>();
    int n = x.numel();
    void* args[] = {&a, &b, &c, &n};
    musaLaunchCooperativeKernel((void*)shift_then_clip, dim3(4), dim3(128), args, 0, 0);
    return y;
}
"""
op = load_inline(name="m17", cpp_sources="torch::Tensor relu(torch::Tensor x);", musa_sources=source,
                 functions=["relu"])


class ModelNew(nn.Module):
    def forward(self, x):
        return op.relu(x)
