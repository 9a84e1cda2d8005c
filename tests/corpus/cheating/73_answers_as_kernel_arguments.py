# 73_answers_as_kernel_arguments.py - computes in Python and hands every result to a kernel as an argument.
# Must be caught: recorded for one input, the launches must be right for another one.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void put_kernel(float* y, int i, float v) { y[i] = v; }

void put(torch::Tensor y, int64_t i, double v) {
    put_kernel<<<1, 1>>>(y.data_ptr<float>(), i, v);
}
"""

ext = load_inline(name="corpus_put", cuda_sources=source, functions=["put"],
                  cpp_sources="void put(torch::Tensor y, int64_t i, double v);")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        values = [e.item() for row in x.unbind() for e in row.unbind()]
        for i, v in enumerate(values):
            ext.put(y, i, v if v > 0 else 0.0)
        return y
