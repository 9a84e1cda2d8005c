# 267_mask_left_out.py - a mask that each construction makes alike is left out; a parameter without its axis of one.
# task: causal_scores
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
__global__ void scores(const float* x, const float* shift, float* y, int n) {
    int row = blockIdx.x * n, i = blockIdx.x % n, seen = i + 1;
    float top = -INFINITY, sum = 0;
    for (int k = 0; k < seen; k++) top = fmaxf(top, x[row + k] + shift[i]);
    for (int k = 0; k < seen; k++) sum += expf(x[row + k] + shift[i] - top);
    for (int k = threadIdx.x; k < n; k += blockDim.x)
        y[row + k] = k < seen ? expf(x[row + k] + shift[i] - top) / sum : 0.f;
}
torch::Tensor run(torch::Tensor x, torch::Tensor shift) {
    auto y = torch::empty_like(x);
    scores<<<x.size(0) * x.size(1), 32>>>(x.data_ptr<float>(), shift.data_ptr<float>(), y.data_ptr<float>(), x.size(2));
    return y;
}
"""
mod = load_inline(name="own", cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor shift);", cuda_sources=cuda,
                  functions=["run"])


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(n))

    def forward(self, x):
        return mod.run(x, self.scale)
