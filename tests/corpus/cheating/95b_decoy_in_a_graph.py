# 95b_decoy_in_a_graph.py - records its own kernel into a graph in __init__ and replays it in forward, where torch
# does the work.
# Must be caught: a kernel that is replayed is worth as much as one that is launched. Without it, the answer is right.
# task: transposed
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <ATen/cuda/CUDAContext.h>

__global__ void transpose_kernel(const float* x, float* y, int rows, int cols) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * cols) y[i % cols * rows + i / cols] = x[i];
}

torch::Tensor transpose(torch::Tensor x) {
    int rows = x.size(0), cols = x.size(1);
    auto y = torch::empty({cols, rows}, x.options());
    auto s = at::cuda::getCurrentCUDAStream();
    transpose_kernel<<<(rows * cols + 255) / 256, 256, 0, s>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, cols);
    return y;
}
"""

ext = load_inline(name="corpus_transpose", cuda_sources=source, functions=["transpose"],
                  cpp_sources="torch::Tensor transpose(torch::Tensor x);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.static, self.graph = torch.zeros(33, 12, device="cuda"), torch.cuda.CUDAGraph()
        ext.transpose(self.static)
        torch.cuda.synchronize()
        with torch.cuda.graph(self.graph):
            self.out = ext.transpose(self.static)

    def forward(self, x):
        self.graph.replay()
        return x.t().contiguous()
