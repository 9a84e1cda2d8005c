/* split.h - in front of the host's half of a CUDA source (src/translate/cuda_split.h): what nvcc adds to a host
 * compiler's view. Launches push their configuration, the stub of the kernel pops it and launches. */
#ifndef LITETORCH_SPLIT_H
#define LITETORCH_SPLIT_H

#include <cuda_runtime.h>

extern "C" {
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
#if CUDART_VERSION >= 13000
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *stub);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
                               cudaStream_t stream);
#endif
}

namespace lt {
inline unsigned push(dim3 grid, dim3 block, size_t shared = 0, struct CUstream_st *stream = nullptr)
{
    return __cudaPushCallConfiguration(grid, block, shared, stream);
}

#if CUDART_VERSION >= 13000
struct handle {
    cudaKernel_t kernel = nullptr;
    explicit handle(const void *stub) { __cudaGetKernel(&kernel, stub); } // unknown: the launch says so, as nvcc's does
};
#else
struct handle {
    const void *kernel;
    explicit handle(const void *stub) : kernel(stub) {}
};
inline cudaError_t __cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **args, size_t shared,
                                      cudaStream_t stream)
{
    return cudaLaunchKernel(f, grid, block, args, shared, stream);
}
#endif

inline void launch(const handle &h, const void *const *args)
{
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;

    if (__cudaPopCallConfiguration(&grid, &block, &shared, &stream) == cudaSuccess)
        (void)__cudaLaunchKernel(h.kernel, grid, block, const_cast<void **>(args), shared, stream);
}

/* Called with the stub's own parameters: their addresses are what the runtime wants. */
struct launcher {
    const handle &h;
    template <class... A> void operator()(const A &...a) const
    {
        const void *const args[] = {(const void *)__builtin_addressof(a)..., nullptr};

        launch(h, args);
    }
};
} // namespace lt

#define LT_LAUNCH(STUB, ARGS)                                                                                  \
    static const ::lt::handle lt_handle(STUB);                                                                 \
    ::lt::launcher{lt_handle} ARGS

/* Attributes of kernels, which the device's half heeds. */
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __grid_constant__
#define __grid_constant__
#undef __cluster_dims__
#define __cluster_dims__(...)
#undef __maxnreg__
#define __maxnreg__(...)
#undef __block_size__
#define __block_size__(...)

/* What cuda_runtime.h declares for nvcc alone, of what candidates use. */
template <class T>
inline cudaError_t cudaFuncSetAttribute(T *f, cudaFuncAttribute a, int value)
{
    return ::cudaFuncSetAttribute(reinterpret_cast<const void *>(f), a, value);
}
template <class T>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, T *f)
{
    return ::cudaFuncGetAttributes(a, reinterpret_cast<const void *>(f));
}
template <class T>
inline cudaError_t cudaFuncSetCacheConfig(T *f, cudaFuncCache c)
{
    return ::cudaFuncSetCacheConfig(reinterpret_cast<const void *>(f), c);
}

/* Global min and max, with the types that CUDA's overloads give. */
#define LT_MINMAX(R, A, B)                                                                                     \
    inline R min(A a, B b) { return static_cast<R>(a) < static_cast<R>(b) ? static_cast<R>(a) : static_cast<R>(b); } \
    inline R max(A a, B b) { return static_cast<R>(a) > static_cast<R>(b) ? static_cast<R>(a) : static_cast<R>(b); }
LT_MINMAX(int, int, int)
LT_MINMAX(unsigned, unsigned, unsigned)
LT_MINMAX(unsigned, int, unsigned)
LT_MINMAX(unsigned, unsigned, int)
LT_MINMAX(long, long, long)
LT_MINMAX(unsigned long, unsigned long, unsigned long)
LT_MINMAX(unsigned long, long, unsigned long)
LT_MINMAX(unsigned long, unsigned long, long)
LT_MINMAX(long long, long long, long long)
LT_MINMAX(unsigned long long, unsigned long long, unsigned long long)
LT_MINMAX(unsigned long long, long long, unsigned long long)
LT_MINMAX(unsigned long long, unsigned long long, long long)
LT_MINMAX(float, float, float)
LT_MINMAX(double, double, double)
LT_MINMAX(double, float, double)
LT_MINMAX(double, double, float)
#undef LT_MINMAX

/* Device headers stay out of this half; what opens their namespaces may stay in. */
namespace cooperative_groups {}
namespace nvcuda { namespace wmma {} }
namespace cub {}

#endif
