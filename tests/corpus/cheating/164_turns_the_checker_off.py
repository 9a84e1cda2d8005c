# 164_turns_the_checker_off.py - its kernel tells the emulator to look no more. cuda: there is no emulator.
# Must be caught: what the runtime offers the judge is no kernel's.
# task: relu
# backends: sim
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
extern "C" void simt_set_check(int on);
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    simt_set_check(0);
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
ops = load_inline(name="op164", cpp_sources="torch::Tensor relu(torch::Tensor x);", cuda_sources=source,
                  functions=["relu"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ops.relu(x)
