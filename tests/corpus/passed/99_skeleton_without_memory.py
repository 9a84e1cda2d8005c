# 99_skeleton_without_memory.py - builds a skeleton on the meta device, as loaders of pretrained models do, runs it
# there for its shapes, and takes torch's decompositions for its tables.
# Nothing of that computes what forward returns.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_relu", cuda_sources=source, functions=["relu"],
                  cpp_sources="torch::Tensor relu(torch::Tensor x);")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        with torch.device("meta"):
            skeleton = nn.Sequential(nn.Linear(8, 16), nn.Softmax(-1))
            self.width = skeleton(torch.empty(2, 8)).sum(0).shape[0]
        self.register_buffer("table", torch.ops.prims.mul(torch.ones(4), torch.ones(4)), persistent=False)

    def forward(self, x):
        return ext.relu(x)
