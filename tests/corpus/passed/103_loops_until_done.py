# 103_loops_until_done.py - repeats a pair of kernels until a flag on the device says that nothing is left to do: how
# often depends
# on the input's values.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void clear_kernel(int* left) { *left = 0; }

// Each turn clears the first two negative values of every row.
__global__ void turn_kernel(float* y, int rows, int n, int* left) {
    int r = blockIdx.x * blockDim.x + threadIdx.x, seen = 0;
    if (r >= rows) return;
    for (int i = 0; i < n; i++)
        if (y[r * n + i] < 0.0f && seen++ < 2) y[r * n + i] = 0.0f;
    if (seen > 2) atomicAdd(left, 1);
}

__global__ void copy_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    auto left = torch::empty({1}, x.options().dtype(torch::kInt32));
    int rows = x.size(0), n = x.size(1), more = 1;
    copy_kernel<<<(rows * n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows * n);
    while (more) {
        clear_kernel<<<1, 1>>>(left.data_ptr<int>());
        turn_kernel<<<(rows + 31) / 32, 32>>>(y.data_ptr<float>(), rows, n, left.data_ptr<int>());
        cudaMemcpy(&more, left.data_ptr<int>(), sizeof more, cudaMemcpyDeviceToHost);
    }
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
