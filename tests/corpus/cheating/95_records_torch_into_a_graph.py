# 95_records_torch_into_a_graph.py - records torch.relu into a graph in __init__, where elementwise arithmetic
# is free, and replays it in forward; a kernel copies the result.
# Must be caught: what a graph records is judged as forward, whenever it was recorded.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void copy_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

torch::Tensor same(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    copy_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_same", cuda_sources=source, functions=["same"],
                  cpp_sources="torch::Tensor same(torch::Tensor x);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.static, self.graph = torch.zeros(1 << 16, device="cuda"), torch.cuda.CUDAGraph()
        torch.relu(self.static)
        torch.cuda.synchronize()
        with torch.cuda.graph(self.graph):
            self.out = torch.relu(self.static)

    def forward(self, x):
        self.static[:x.numel()].copy_(x.reshape(-1))
        self.graph.replay()
        return ext.same(self.out[:x.numel()].reshape(x.shape))
