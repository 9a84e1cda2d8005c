# 183_fetches_its_row_in_bulk.py - a block fetches its row by one bulk copy and waits at a barrier in memory.
# Must pass: the copy's bytes are written, and all threads have waited for them.
# task: relu
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__device__ unsigned smem(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__global__ void k(const float *x, float *y, int n) {
    __shared__ alignas(128) float tile[16];
    __shared__ alignas(8) unsigned long long bar;
    int row = blockIdx.x;
    if (row * 16 >= n) return;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(smem(&bar)));
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(smem(&bar)), "r"(64));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 64, [%2];"
                     :: "r"(smem(tile)), "l"(x + row * 16), "r"(smem(&bar)) : "memory");
    }
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(smem(&bar)) : "memory");
    int i = row * 16 + threadIdx.x;
    if (threadIdx.x < 16 && i < n) y[i] = tile[threadIdx.x] > 0.0f ? tile[threadIdx.x] : 0.0f;
}
torch::Tensor go(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    k<<<(n + 15) / 16, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(name="corpus_ext", cuda_sources=source, functions=["go"],
                  cpp_sources="torch::Tensor go(torch::Tensor x);")


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.go(x)
