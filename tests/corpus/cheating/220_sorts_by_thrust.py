# 220_sorts_by_thrust.py - an algorithm of CUDA's libraries sorts the whole array, as cub::DeviceRadixSort would.
# task: sorted_values
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <thrust/sort.h>
#include <thrust/device_ptr.h>
torch::Tensor go(torch::Tensor x) {
    auto y = x.clone();
    thrust::device_ptr<float> p(y.data_ptr<float>());
    thrust::sort(p, p + y.numel());
    return y;
}
"""
ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["go"],
                  cpp_sources="torch::Tensor go(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.go(x)
