import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void times_vector(const float *a, const float *v, float *out, int n)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0.0f;

    if (row >= n)
        return;
    for (int j = 0; j < n; ++j)
        s += a[row * n + j] * v[j];
    out[row] = s;
}

__global__ void square_sum(const float *v, float *out, int n)
{
    __shared__ float part[128];
    float s = 0.0f;

    for (int j = threadIdx.x; j < n; j += 128)
        s += v[j] * v[j];
    part[threadIdx.x] = s;
    __syncthreads();
    for (int k = 64; k > 0; k >>= 1) {
        if (threadIdx.x < k)
            part[threadIdx.x] += part[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        out[0] = part[0];
}

__global__ void divide(const float *v, const float *sum, const float *w, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        out[i] = v[i] / sqrtf(sum[0] / n + 1.0f) + w[i];
}

torch::Tensor forward(torch::Tensor a, torch::Tensor v, torch::Tensor w)
{
    int n = v.numel(), blocks = (n + 63) / 64;
    auto y = torch::empty_like(v);
    auto sum = torch::empty({1}, v.options());
    auto out = torch::empty_like(v);
    const float *from = v.data_ptr<float>();
    for (int k = 0; k < 3; ++k) {
        times_vector<<<blocks, 64>>>(a.data_ptr<float>(), from, y.data_ptr<float>(), n);
        square_sum<<<1, 128>>>(y.data_ptr<float>(), sum.data_ptr<float>(), n);
        divide<<<blocks, 64>>>(y.data_ptr<float>(), sum.data_ptr<float>(), w.data_ptr<float>(),
                               out.data_ptr<float>(), n);
        from = out.data_ptr<float>();
    }
    return out;
}
"""
module = load_inline("chain_3", cpp_sources="torch::Tensor forward(torch::Tensor a, torch::Tensor v, torch::Tensor w);",
                     cuda_sources=source, functions=["forward"])


class ModelNew(nn.Module):
    def forward(self, a, v, w):
        return module.forward(a, v, w)
