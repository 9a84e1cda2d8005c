/* device_utils.h - ATen's names for shuffles and atomic sums in kernels: ATen/cuda/DeviceUtils.cuh and Atomic.cuh. */
#ifndef LITETORCH_DEVICE_UTILS_H
#define LITETORCH_DEVICE_UTILS_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "litetorch/types.h"

#define LT_SHUFFLE(NAME, HOW, WHERE)                                                                         \
    template <typename T>                                                                                    \
    __device__ __forceinline__ T NAME(T value, WHERE, int width = 32, unsigned int mask = 0xffffffff)        \
    {                                                                                                        \
        return HOW(mask, value, from, width);                                                                  \
    }
LT_SHUFFLE(WARP_SHFL, __shfl_sync, int from)
LT_SHUFFLE(WARP_SHFL_XOR, __shfl_xor_sync, int from)
LT_SHUFFLE(WARP_SHFL_UP, __shfl_up_sync, unsigned int from)
LT_SHUFFLE(WARP_SHFL_DOWN, __shfl_down_sync, unsigned int from)
#undef LT_SHUFFLE
__device__ __forceinline__ unsigned int ACTIVE_MASK() { return __activemask(); }
__device__ __forceinline__ unsigned int WARP_BALLOT(int predicate, unsigned int mask = 0xffffffff)
{
    return __ballot_sync(mask, predicate);
}

__device__ __forceinline__ float gpuAtomicAdd(float *p, float value) { return atomicAdd(p, value); }
__device__ __forceinline__ double gpuAtomicAdd(double *p, double value) { return atomicAdd(p, value); }
__device__ __forceinline__ int32_t gpuAtomicAdd(int32_t *p, int32_t value) { return atomicAdd(p, value); }
__device__ __forceinline__ int64_t gpuAtomicAdd(int64_t *p, int64_t value)
{
    return (int64_t)atomicAdd((unsigned long long *)p, (unsigned long long)value);
}
__device__ __forceinline__ at::Half gpuAtomicAdd(at::Half *p, at::Half value)
{
    return at::Half(__half2float(atomicAdd((__half *)p, __float2half((float)value))));
}
__device__ __forceinline__ at::BFloat16 gpuAtomicAdd(at::BFloat16 *p, at::BFloat16 value)
{
    return at::BFloat16(__bfloat162float(atomicAdd((__nv_bfloat16 *)p, __float2bfloat16((float)value))));
}
__device__ __forceinline__ at::Half atomicAdd(at::Half *p, at::Half value) { return gpuAtomicAdd(p, value); }
__device__ __forceinline__ at::BFloat16 atomicAdd(at::BFloat16 *p, at::BFloat16 value)
{
    return gpuAtomicAdd(p, value);
}
__device__ __forceinline__ int64_t atomicAdd(int64_t *p, int64_t value) { return gpuAtomicAdd(p, value); }
template <class T> __device__ __forceinline__ void gpuAtomicAddNoReturn(T *p, T value) { gpuAtomicAdd(p, value); }

#endif
