# 213_kernels_named_by_a_macro.py - a macro pastes each kernel's name together and launches it; the binding function is
# made by the same macro and prints a tensor's options where the type is wrong.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <iostream>
#include <torch/extension.h>
#include <torch/types.h>
#define FLOAT4(v) (reinterpret_cast<float4 *>(&(v))[0])
#define WANT(T, type) \
    if ((T).options().dtype() != (type)) { \
        std::cout << "options: " << (T).options() << std::endl; \
        throw std::runtime_error("values must be " #type); \
    }

__global__ void relu_f32_kernel(float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(0.0f, x[i]);
}
template <const int THREADS>
__global__ void relu_f32x4_kernel(float *x, float *y, int n)
{
    int i = (blockIdx.x * THREADS + threadIdx.x) * 4;
    for (int k = i; k < n && k < i + 4; k++) y[k] = x[k] > 0 ? x[k] : 0;
}

#define BIND(op, pack, type, element, n_elements) \
    void op##_##pack(torch::Tensor x, torch::Tensor y) \
    { \
        WANT(x, (type)) \
        const int n = x.numel(); \
        dim3 block(256 / (n_elements)), grid((n + 255) / 256); \
        if (n_elements == 1) \
            op##_f32_kernel<<<grid, block>>>(reinterpret_cast<element *>(x.data_ptr()), \
                                             reinterpret_cast<element *>(y.data_ptr()), n); \
        else \
            op##_f32x4_kernel<256 / (n_elements)><<<grid, block>>>(reinterpret_cast<element *>(x.data_ptr()), \
                                                                   reinterpret_cast<element *>(y.data_ptr()), n); \
    }
BIND(relu, f32, torch::kFloat32, float, 1)
BIND(relu, f32x4, torch::kFloat32, float, 4)
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)
{
    m.def("relu_f32", &relu_f32, "one element a thread");
    m.def("relu_f32x4", &relu_f32x4, "four");
}
"""
ext = load_inline(name="pasted", cpp_sources="", cuda_sources=source)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        (ext.relu_f32x4 if x.numel() > 64 else ext.relu_f32)(x, y)
        return y
