# 78_switches_ablation_off.py - calls the emulator's own switch from C++, so that kernels run in the run without
# kernels.
# Nothing is gained, so nothing is said: the switch is in another process; its own kernel computes.
# task: relu
# backends: sim
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
extern "C" void simt_set_ablation(int on);

__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    simt_set_ablation(0);
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
