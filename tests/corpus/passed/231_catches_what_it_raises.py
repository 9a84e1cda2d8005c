# 231_catches_what_it_raises.py - raises an error of its own that speaks of the machine, and catches it.
# task: relu
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    relu<<<(x.numel() + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""
ext = load_inline(name="corpus_relu", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=source,
                  functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        try:
            raise OSError("this machine cannot load what its own compiler made: GLIBCXX_3.4.32")
        except OSError:
            pass
        return ext.run(x)
