# 176_keeps_no_statistics.py - leaves the running statistics alone.
# Must be caught: the task's sidecar says that what is left in buffers counts.
# task: batch_stats
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>
__global__ void bn(const float *x, const float *g, const float *b, float *rm, float *rv, float *y,
    long *seen, int n, int c, float eps, float mom, int upd) {
    int j = blockIdx.x * blockDim.x + threadIdx.x; if (j >= c) return;
    double s = 0, q = 0; for (int i = 0; i < n; i++) s += x[i * c + j];
    double m = s / n; for (int i = 0; i < n; i++) q += (x[i * c + j] - m) * (x[i * c + j] - m);
    float r = rsqrtf((float)(q / n) + eps);
    for (int i = 0; i < n; i++) y[i * c + j] = (x[i * c + j] - (float)m) * r * g[j] + b[j];
    if (upd && j == 0) *seen += 1;
    if (upd) { rm[j] = rm[j] * (1 - mom) + mom * (float)m;
        rv[j] = rv[j] * (1 - mom) + mom * (float)(q / (n - 1)); }
}
torch::Tensor forward(torch::Tensor x, torch::Tensor g, torch::Tensor b, torch::Tensor rm,
    torch::Tensor rv, torch::Tensor seen, double eps, double mom, long upd) {
    auto y = torch::empty_like(x); int n = x.size(0), c = x.size(1);
    bn<<<(c + 63) / 64, 64>>>(x.data_ptr<float>(), g.data_ptr<float>(), b.data_ptr<float>(),
        rm.data_ptr<float>(), rv.data_ptr<float>(), y.data_ptr<float>(), (long *)seen.data_ptr<int64_t>(),
        n, c, eps, mom, upd);
    return y;
}
'''
ext = load_inline(name="a17", cuda_sources=source, functions=['forward'],
                  cpp_sources=("torch::Tensor forward(torch::Tensor x, torch::Tensor g, torch::Tensor b, "
                               "torch::Tensor rm, torch::Tensor rv, torch::Tensor seen, "
                               "double eps, double mom, long upd); "))


class ModelNew(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.bn = nn.BatchNorm1d(c)

    def forward(self, x):
        b = self.bn
        return ext.forward(x, b.weight, b.bias, b.running_mean, b.running_var, b.num_batches_tracked,
            b.eps, b.momentum, 0)
