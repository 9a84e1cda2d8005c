# 246_trusts_where_segments_begin.py - reads rows from one beginning to the next; slices clamp, a kernel does not.
# task: ragged_sums
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void segment_sums(const float* x, const int64_t* begins, float* out, int columns) {
    int64_t from = begins[blockIdx.x], to = begins[blockIdx.x + 1];
    for (int c = threadIdx.x; c < columns; c += blockDim.x) {
        float sum = 0.0f;
        for (int64_t r = from; r < to; r++) sum += x[r * columns + c];
        out[blockIdx.x * columns + c] = sum;
    }
}

torch::Tensor sums(torch::Tensor x, torch::Tensor begins) {
    int segments = begins.numel() - 1, columns = x.size(1);
    auto out = torch::empty({segments, columns}, x.options());
    segment_sums<<<segments, 32>>>(x.data_ptr<float>(), begins.data_ptr<int64_t>(), out.data_ptr<float>(), columns);
    return out;
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["sums"],
                  cpp_sources="torch::Tensor sums(torch::Tensor x, torch::Tensor begins);")


class ModelNew(nn.Module):
    def forward(self, x, begins):
        return ext.sums(x, begins)
