# 230_convolves_behind_torch.py - published rules: torch convolves, then an operator that every machine has.
# task: convolved
# options: --protocol kernelbench
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/ATen.h>
torch::Tensor go(torch::Tensor x, torch::Tensor w) {
    return at::conv2d(x, w, {}, 1, 1);
}
"""
ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["go"],
                  cpp_sources="torch::Tensor go(torch::Tensor x, torch::Tensor w);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.b = nn.Conv2d(8, 8, 3, padding=1, bias=False)

    def forward(self, x):
        return ext.go(self.a(x), self.b.weight)
