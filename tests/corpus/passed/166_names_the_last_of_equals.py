# 166_names_the_last_of_equals.py - honest: of equal values it names the last one, torch another one.
# task: ranks
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void top_kernel(const float* x, float* v, int64_t* at, int cols) {
    const float* row = x + blockIdx.x * cols;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        int before = 0;
        for (int k = 0; k < cols; k++) before += row[k] > row[i] || (row[k] == row[i] && k > i);
        if (before < 3) {
            v[blockIdx.x * 3 + before] = row[i];
            at[blockIdx.x * 3 + before] = i;
        }
    }
}

std::vector<torch::Tensor> top(torch::Tensor x) {
    auto v = torch::empty({x.size(0), 3}, x.options());
    auto at = torch::empty({x.size(0), 3}, x.options().dtype(torch::kLong));
    top_kernel<<<(int)x.size(0), 64>>>(x.data_ptr<float>(), v.data_ptr<float>(), at.data_ptr<int64_t>(),
                                       (int)x.size(1));
    return {v, at};
}
"""
ops = load_inline(name="op166b", cpp_sources="std::vector<torch::Tensor> top(torch::Tensor x);", cuda_sources=source,
                  functions=["top"])


class ModelNew(nn.Module):
    def forward(self, x):
        values, places = ops.top(x)
        return values, places
