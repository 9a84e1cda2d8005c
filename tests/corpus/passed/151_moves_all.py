# 151_moves_all.py - the honest twin: a kernel moves every element.
# task: turned
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void turn_kernel(const float* x, float* y, int rows, int cols) {
    const float* from = x + blockIdx.x * rows * cols;
    float* to = y + blockIdx.x * rows * cols;
    for (int i = threadIdx.x; i < rows * cols; i += blockDim.x) to[i % cols * rows + i / cols] = from[i];
}

torch::Tensor turn(torch::Tensor x) {
    auto y = torch::empty({x.size(0), x.size(2), x.size(1)}, x.options());
    turn_kernel<<<(int)x.size(0), 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), (int)x.size(1), (int)x.size(2));
    return y;
}
"""
ops = load_inline(name="op151b", cpp_sources="torch::Tensor turn(torch::Tensor x);", cuda_sources=source,
                  functions=["turn"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ops.turn(x)
