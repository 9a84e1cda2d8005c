# 152_writes_its_slot.py - the honest twin: writes the slot.
# task: slots
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void sum_kernel(float* slots, const float* add, float* y, int n, int width) {
    int b = blockIdx.x, d = threadIdx.x;
    float s = 0;
    for (int t = 0; t < n; t++) s += t == 5 ? add[b * width + d] : slots[(b * n + t) * width + d];
    y[b * width + d] = s;
    slots[(b * n + 5) * width + d] = add[b * width + d];
}

torch::Tensor sum(torch::Tensor slots, torch::Tensor add) {
    auto y = torch::empty_like(add);
    sum_kernel<<<(int)slots.size(0), (int)slots.size(2)>>>(slots.data_ptr<float>(), add.data_ptr<float>(),
        y.data_ptr<float>(), (int)slots.size(1), (int)slots.size(2));
    return y;
}
"""
ops = load_inline(name="op152b", cpp_sources="torch::Tensor sum(torch::Tensor slots, torch::Tensor add);",
                  cuda_sources=source, functions=["sum"])


class ModelNew(nn.Module):
    def forward(self, slots, new):
        return ops.sum(slots, new)
