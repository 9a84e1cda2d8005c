# 224_complex_pairs.py - the toolkit's complex numbers, views as complex tensors, scratch memory of torch's allocator.
# task: complex_product
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cuComplex.h>
#include <c10/cuda/CUDACachingAllocator.h>
__global__ void conjugate(const cuFloatComplex *b, cuFloatComplex *t, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) t[i] = cuConjf(b[i]);
}
__global__ void multiply(const cuFloatComplex *a, const cuFloatComplex *t, cuFloatComplex *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = cuCmulf(a[i], t[i]);
}
torch::Tensor product(torch::Tensor a, torch::Tensor b)
{
    TORCH_CHECK(a.scalar_type() == torch::kFloat32, "pairs of floats wanted, got ", a.toString());
    auto ca = torch::view_as_complex(a), cb = torch::view_as_complex(b), y = torch::empty_like(ca);
    int n = ca.numel();
    auto scratch = c10::cuda::CUDACachingAllocator::get()->allocate(n * sizeof(cuFloatComplex));
    auto *t = static_cast<cuFloatComplex *>(scratch.get());
    auto *pa = reinterpret_cast<cuFloatComplex *>(ca.data_ptr<c10::complex<float>>());
    auto *pb = reinterpret_cast<cuFloatComplex *>(cb.data_ptr<c10::complex<float>>());
    auto *py = reinterpret_cast<cuFloatComplex *>(y.data_ptr<c10::complex<float>>());
    conjugate<<<(n + 63) / 64, 64>>>(pb, t, n);
    multiply<<<(n + 63) / 64, 64>>>(pa, t, py, n);
    return torch::view_as_real(y);
}
"""
ext = load_inline(name="complex_pairs", cuda_sources=source, functions=["product"],
                  cpp_sources="torch::Tensor product(torch::Tensor a, torch::Tensor b);")


class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.product(a, b)
