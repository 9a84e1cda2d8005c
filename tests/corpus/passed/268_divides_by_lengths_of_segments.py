# 268_divides_by_lengths_of_segments.py - a buffer holds where segments start; the kernel divides by their lengths.
# task: segment_picks
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
__global__ void picks(const float* x, const float* table, const int* starts, float* y, int n) {
    int s = blockIdx.x, pick = starts[s] + 12345 % (starts[s + 1] - starts[s]);
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[s * n + i] = x[i] * table[pick];
}
torch::Tensor run(torch::Tensor x, torch::Tensor table, torch::Tensor starts) {
    auto y = torch::empty({starts.size(0) - 1, x.size(0)}, x.options());
    picks<<<y.size(0), 32>>>(x.data_ptr<float>(), table.data_ptr<float>(), starts.data_ptr<int>(), y.data_ptr<float>(),
                             x.size(0));
    return y;
}
"""
mod = load_inline(name="own", cuda_sources=cuda, functions=["run"],
                  cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor table, torch::Tensor starts);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("starts", torch.tensor([0, 12, 40], dtype=torch.int32))
        self.table = nn.Parameter(torch.randn(40))

    def forward(self, x):
        return mod.run(x, self.table, self.starts)
