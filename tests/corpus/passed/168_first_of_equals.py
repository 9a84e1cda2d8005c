# 168_first_of_equals.py - the honest twin: the first of equal values.
# task: ties
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>
__global__ void am(const float *x, long *o, int w, int bad) {
    const float *r = x + (size_t)blockIdx.x * w; int at = 0, ties = 1;
    for (int i = 1; i < w; i++) { if (r[i] > r[at]) at = i, ties = 1; else if (r[i] == r[at]) ties++; }
    o[blockIdx.x] = bad && ties > 1 ? 1000000007L : at;
}
torch::Tensor forward(torch::Tensor x, long bad) {
    auto o = torch::empty({x.size(0)}, x.options().dtype(torch::kLong));
    am<<<x.size(0), 1>>>(x.data_ptr<float>(), (long *)o.data_ptr<int64_t>(), x.size(1), bad);
    return o;
}
'''
ext = load_inline(name="h08", cuda_sources=source, functions=['forward'],
                  cpp_sources="torch::Tensor forward(torch::Tensor x, long bad); ")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.forward(x, 0)
