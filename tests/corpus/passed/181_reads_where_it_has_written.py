# 181_reads_where_it_has_written.py - a word of shared memory is read in the loop's last turn alone, after one
# has written it.
# Must pass: a compiler may take the load out of the loop; the program does not.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void k(const float *x, float *y, int n) {
    __shared__ float kept[2];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? x[i] : 0.0f, sum = 0.0f;
    for (int turn = 0; turn < 3; turn++) {
        if (turn == 1) {
            if (threadIdx.x == 0) kept[0] = 1.0f;
            __syncthreads();
        }
        if (turn > 1) sum += kept[0];
    }
    if (i < n) y[i] = v > 0.0f ? v * sum : 0.0f;
}
torch::Tensor go(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    k<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["go"],
                  cpp_sources="torch::Tensor go(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.go(x)
