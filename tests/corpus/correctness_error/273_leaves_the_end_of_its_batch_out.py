# 273_leaves_the_end_of_its_batch_out.py - a batch's statistics without the last 256 of 16,384 elements of each sample.
# Must be caught: what rounding of long sums excuses is less.
# task: pooled_batch
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void statistics(const float* x, float* mean, float* var, int N, int C, int S) {
    int c = threadIdx.x;
    float sum = 0, squares = 0;
    for (int n = 0; n < N; n++)
        for (int i = 0; i < S - 256; i++) sum += x[(n * C + c) * S + i];
    float m = sum / (N * (S - 256));
    for (int n = 0; n < N; n++)
        for (int i = 0; i < S - 256; i++) {
            float d = x[(n * C + c) * S + i] - m;
            squares += d * d;
        }
    mean[c] = m;
    var[c] = squares / (N * (S - 256));
}

__global__ void pooled(const float* x, const float* mean, const float* var, const float* weight, const float* bias,
                       float* y, int total, int C, int D, int H, int W, float eps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int w = i % (W / 4) * 4, h = i / (W / 4) % (H / 4) * 4, d = i / (W / 4) / (H / 4) % (D / 4) * 4;
    int plane = i / (W / 4) / (H / 4) / (D / 4), c = plane % C;
    float scale = rsqrtf(var[c] + eps) * weight[c], sum = 0;
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++)
            for (int k = 0; k < 4; k++)
                sum += (x[((plane * D + d + a) * H + h + b) * W + w + k] - mean[c]) * scale + bias[c];
    y[i] = sum / 64;
}

torch::Tensor run(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
    int N = x.size(0), C = x.size(1), D = x.size(2), H = x.size(3), W = x.size(4);
    auto y = torch::empty({N, C, D / 4, H / 4, W / 4}, x.options());
    auto mean = torch::empty({C}, x.options()), var = torch::empty({C}, x.options());
    int total = y.numel();
    statistics<<<1, C>>>(x.data_ptr<float>(), mean.data_ptr<float>(), var.data_ptr<float>(), N, C, D * H * W);
    pooled<<<(total + 127) / 128, 128>>>(x.data_ptr<float>(), mean.data_ptr<float>(), var.data_ptr<float>(),
                                         weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
                                         total, C, D, H, W, (float)eps);
    return y;
}
"""
signature = "torch::Tensor run(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps);"
mod = load_inline(name="own", cpp_sources=signature, cuda_sources=cuda, functions=["run"])


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm3d(channels)

    def forward(self, x):
        return mod.run(x, self.norm.weight, self.norm.bias, self.norm.eps)
