/* warp.cuh - numbers eight at a time, and sums over a warp or a block in a fixed order. */
#ifndef MC_NN_WARP_CUH
#define MC_NN_WARP_CUH

#include <stdint.h>
#include <string.h>

#ifdef NN_MUSA
#include "nn/ops/cuda/engine_musa.h"
#else
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#endif

/* Code without PTX, for what is no NVIDIA GPU. */
#if defined NN_EMULATED || defined NN_MUSA
#define NN_PORTABLE
#endif

typedef __nv_bfloat16 bf16;

#define FULL_WARP 0xffffffffu

#ifdef NN_EMULATED
#define SHARED_BYTES(name) char *name = simt_dynamic_shared
#elif defined NN_COMPILE_ONLY
#define SHARED_BYTES(name) char *name = 0
#else
#define SHARED_BYTES(name) extern __shared__ __align__(1024) char name[]
#endif

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(bf16 x) { return __bfloat162float(x); }
template <class T> __device__ __forceinline__ T from_float(float x);
template <> __device__ __forceinline__ float from_float<float>(float x) { return x; }
template <> __device__ __forceinline__ bf16 from_float<bf16>(float x) { return __float2bfloat16_rn(x); }

/* Two bf16 in one register, the first in the low half. */
__device__ __forceinline__ uint32_t pack2(float a, float b)
{
    __nv_bfloat162 v = __floats2bfloat162_rn(a, b); /* one instruction */
    uint32_t r;

    memcpy(&r, &v, sizeof r);
    return r;
}
__device__ __forceinline__ float low2(uint32_t x) { return __uint_as_float(x << 16); }
__device__ __forceinline__ float high2(uint32_t x) { return __uint_as_float(x & 0xffff0000u); }

/* 2^x in one instruction: 2 units in the last place, and 0 below 2^-126, which no probability notices. */
__device__ __forceinline__ float exp2_short(float x)
{
#ifdef NN_PORTABLE
    return exp2f(x);
#else
    float y;

    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}

/* Eight elements in 16-byte accesses. */
__device__ __forceinline__ void load8(const float *p, float *x)
{
    float4 a = ((const float4 *)p)[0], b = ((const float4 *)p)[1];

    x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w, x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
}
__device__ __forceinline__ void load8(const bf16 *p, float *x)
{
    uint4 a = *(const uint4 *)p;

    x[0] = low2(a.x), x[1] = high2(a.x), x[2] = low2(a.y), x[3] = high2(a.y);
    x[4] = low2(a.z), x[5] = high2(a.z), x[6] = low2(a.w), x[7] = high2(a.w);
}
__device__ __forceinline__ void store8(float *p, const float *x)
{
    ((float4 *)p)[0] = make_float4(x[0], x[1], x[2], x[3]);
    ((float4 *)p)[1] = make_float4(x[4], x[5], x[6], x[7]);
}
__device__ __forceinline__ void store8(bf16 *p, const float *x)
{
    *(uint4 *)p = make_uint4(pack2(x[0], x[1]), pack2(x[2], x[3]), pack2(x[4], x[5]), pack2(x[6], x[7]));
}

/* Four in one access. */
__device__ __forceinline__ void load4(const float *p, float *x)
{
    float4 a = *(const float4 *)p;

    x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w;
}
__device__ __forceinline__ void load4(const bf16 *p, float *x)
{
    uint2 a = *(const uint2 *)p;

    x[0] = low2(a.x), x[1] = high2(a.x), x[2] = low2(a.y), x[3] = high2(a.y);
}
__device__ __forceinline__ void store4(float *p, const float *x)
{
    *(float4 *)p = make_float4(x[0], x[1], x[2], x[3]);
}
__device__ __forceinline__ void store4(bf16 *p, const float *x)
{
    *(uint2 *)p = make_uint2(pack2(x[0], x[1]), pack2(x[2], x[3]));
}

/* In one register for the whole warp, so that branches on it are known not to diverge. */
__device__ __forceinline__ int warp_index() { return __shfl_sync(FULL_WARP, (int)threadIdx.x / 32, 0); }

/* All lanes get the result. */
__device__ __forceinline__ float warp_sum(float x)
{
    for (int i = 16; i; i >>= 1)
        x += __shfl_xor_sync(FULL_WARP, x, i);
    return x;
}
__device__ __forceinline__ float warp_max(float x)
{
    for (int i = 16; i; i >>= 1)
        x = fmaxf(x, __shfl_xor_sync(FULL_WARP, x, i));
    return x;
}

/* All threads get the result; part: 32 floats of shared memory. Safe to call again at once with the same memory. */
__device__ __forceinline__ float block_sum(float x, float *part)
{
    int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    float sum = 0;

    x = warp_sum(x);
    if ((threadIdx.x & 31) == 0)
        part[warp] = x;
    __syncthreads();
    for (int i = 0; i < warps; i++)
        sum += part[i];
    __syncthreads();
    return sum;
}
__device__ __forceinline__ float block_max(float x, float *part)
{
    int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;

    x = warp_max(x);
    if ((threadIdx.x & 31) == 0)
        part[warp] = x;
    __syncthreads();
    x = part[0];
    for (int i = 1; i < warps; i++)
        x = fmaxf(x, part[i]);
    __syncthreads();
    return x;
}

#endif
