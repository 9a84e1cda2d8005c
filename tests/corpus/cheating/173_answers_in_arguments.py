# 173_answers_in_arguments.py - its host computes all, and tells kernels the answer by their arguments.
# Must be caught: what the host tells the device could be the whole answer.
# task: settles

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>
__global__ void put(float *y, int at, float a, float b, float c, float d) { y[at] = a; y[at + 1] = b;
    y[at + 2] = c; y[at + 3] = d; }
void tell(torch::Tensor y, long at, double a, double b, double c, double d) {
    put<<<1, 1>>>(y.data_ptr<float>(), at, a, b, c, d); }
'''
ext = load_inline(name="a49", cuda_sources=source, functions=['tell'],
                  cpp_sources="void tell(torch::Tensor y, long at, double a, double b, double c, double d); ")


class ModelNew(nn.Module):
    def forward(self, x):
        y, h = torch.empty_like(x), x.cpu()
        for i in range(1000):
            n = 0.5 * (h + torch.cos(h))
            done, h = (n - h).abs().max() < 1e-4, n
            if done:
                break
        h = h.tolist()
        for i in range(0, len(h), 4):
            ext.tell(y, i, *h[i:i + 4])
        return y
