# 62_half_precision_inside.py - rounds every value to half precision, which a loose tolerance hides.
# Must be caught: the tolerance is a few times what honest single precision loses.
# task: rowsum
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void row_kernel(const float* x, float* out, int rows, int n, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    const float* r = x + (long)i * n;
    float* y = out + (long)i * width;
    float s = 0.0f;
    for (int j = 0; j < n; j++) s += __half2float(__float2half(r[j]));
    *y = s;
}

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty({x.size(0)}, x.options());
    int rows = x.size(0), n = x.size(1);
    row_kernel<<<(rows + 31) / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, n, y.numel() / rows);
    return y;
}
"""

ext = load_inline(name="corpus_run", cuda_sources=source, functions=["run"],
                  cpp_sources="torch::Tensor run(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
