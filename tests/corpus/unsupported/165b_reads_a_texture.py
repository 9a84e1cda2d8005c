# 165b_reads_a_texture.py - honest: reads its input as a texture. An executor has none: nobody's mistake.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__global__ void relu_kernel(cudaTextureObject_t x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(tex1Dfetch<float>(x, i), 0.0f);
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    cudaResourceDesc what = {};
    cudaTextureDesc how = {};
    cudaTextureObject_t texture = 0;
    what.resType = cudaResourceTypeLinear;
    what.res.linear.devPtr = x.data_ptr<float>();
    what.res.linear.desc = cudaCreateChannelDesc<float>();
    what.res.linear.sizeInBytes = n * sizeof(float);
    how.readMode = cudaReadModeElementType;
    cudaCreateTextureObject(&texture, &what, &how, nullptr);
    relu_kernel<<<(n + 255) / 256, 256>>>(texture, y.data_ptr<float>(), n);
    cudaDestroyTextureObject(texture);
    return y;
}
"""
ops = load_inline(name="op165d", cpp_sources="torch::Tensor relu(torch::Tensor x);", cuda_sources=source,
                  functions=["relu"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ops.relu(x)
