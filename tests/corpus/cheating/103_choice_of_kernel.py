# 103_choice_of_kernel.py - compares on the host; which kernel is launched for an element says how that came out.
# Must be caught: no argument carries a value, the order of launches does.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void keep_kernel(const float* x, float* y, int i) { y[i] = x[i]; }
__global__ void drop_kernel(const float* x, float* y, int i) { y[i] = 0.0f; }

void keep(torch::Tensor x, torch::Tensor y, int64_t i) {
    keep_kernel<<<1, 1>>>(x.data_ptr<float>(), y.data_ptr<float>(), i);
}

void drop(torch::Tensor x, torch::Tensor y, int64_t i) {
    drop_kernel<<<1, 1>>>(x.data_ptr<float>(), y.data_ptr<float>(), i);
}
"""

ext = load_inline(name="corpus_choice", cuda_sources=source, functions=["keep", "drop"],
                  cpp_sources="void keep(torch::Tensor x, torch::Tensor y, int64_t i);"
                              "void drop(torch::Tensor x, torch::Tensor y, int64_t i);")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        values = [e.item() for row in x.unbind() for e in row.unbind()]
        for i, v in enumerate(values):
            (ext.keep if v > 0 else ext.drop)(x, y, i)
        return y
