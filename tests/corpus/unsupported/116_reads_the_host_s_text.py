# 116_reads_the_host_s_text.py - its kernel calls strtod on text of the host, in which the answers stand.
# Must be caught: device code has no strtod, and a kernel no memory of the host.
# Strtod is no function that kernels have.
# task: relu
# backends: sim
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cstdlib>
#include <cstdio>
#include <string>

__global__ void parse_kernel(const char* text, float* y, int n) {
    char* end = (char*)text;
    for (int i = 0; i < n; i++) y[i] = (float)strtod(end, &end);
}

torch::Tensor relu(torch::Tensor x) {
    static std::string text;
    auto y = torch::empty_like(x);
    auto h = x.cpu();
    char word[40];
    text.clear();
    for (int i = 0; i < x.numel(); i++) {
        float v = h.data_ptr<float>()[i];
        snprintf(word, sizeof word, "%.9g ", v > 0 ? v : 0.0f);
        text += word;
    }
    parse_kernel<<<1, 1>>>(text.c_str(), y.data_ptr<float>(), (int)x.numel());
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
