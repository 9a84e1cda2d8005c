# 135_truncates_in_its_kernel.py - its kernel writes whole numbers; the cast to floats keeps them.
# task: trunc
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void trunc_kernel(const float* x, int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = (int)x[i];
}

torch::Tensor whole(torch::Tensor x) {
    auto y = torch::empty(x.sizes(), x.options().dtype(torch::kInt32));
    int n = x.numel();
    trunc_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<int>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["whole"],
                  cpp_sources="torch::Tensor whole(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.whole(x).float()
