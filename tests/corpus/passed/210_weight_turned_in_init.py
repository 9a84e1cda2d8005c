# 210_weight_turned_in_init.py - the weight is transposed once, on the host, while the model is constructed.
# Must pass: the judge reads the arrangement off what the construction holds and lays its own weights that way.
# task: linear_relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void linear_kernel(const float* x, const float* w, const float* b, float* y, int n_in, int n_out) {
    int j = threadIdx.x, i = blockIdx.x;
    float s = b[j];
    for (int k = 0; k < n_in; k++) s += x[i * n_in + k] * w[k * n_out + j];
    y[i * n_out + j] = fmaxf(s, 0.0f);
}

torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    auto y = torch::empty({x.size(0), b.size(0)}, x.options());
    int n_in = x.size(1), n_out = b.size(0);
    linear_kernel<<<x.size(0), n_out>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(),
                                        y.data_ptr<float>(), n_in, n_out);
    return y;
}
"""

ext = load_inline(name="corpus_linear_relu", cuda_sources=source, functions=["linear"],
                  cpp_sources="torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b);")


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)
        self.register_buffer("turned", self.fc.weight.detach().t().contiguous(), persistent=False)

    def forward(self, x):
        return ext.linear(x, self.turned, self.fc.bias)
