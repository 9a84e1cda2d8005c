import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void heat(const float *x, float *out, int height, int width)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, r = i / width, c = i % width;

    if (r >= height)
        return;
    if (r == 0 || r == height - 1 || c == 0 || c == width - 1)
        out[i] = x[i];
    else
        out[i] = 0.25f * (x[i - width] + x[i + width] + x[i - 1] + x[i + 1]);
}

torch::Tensor forward(torch::Tensor x, int64_t steps)
{
    auto a = torch::empty_like(x);
    auto b = torch::empty_like(x);
    int height = x.size(0), width = x.size(1), blocks = (height * width + 127) / 128;
    const float *from = x.data_ptr<float>();
    for (int64_t k = 0; k < steps; ++k) {
        float *to = k % 2 ? b.data_ptr<float>() : a.data_ptr<float>();
        heat<<<blocks, 128>>>(from, to, height, width);
        from = to;
    }
    return steps % 2 ? a : b;
}
"""
module = load_inline("chain_2", cpp_sources="torch::Tensor forward(torch::Tensor x, int64_t steps);",
                     cuda_sources=source, functions=["forward"])


class ModelNew(nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def forward(self, x):
        return module.forward(x, self.steps)
