/* cuComplex.h - the toolkit's complex numbers, as pairs, for programs that do their arithmetic by its functions. */
#ifndef SIMT_CUCOMPLEX_H
#define SIMT_CUCOMPLEX_H

#include <cuda_runtime.h>

#include <cmath>

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define SIMT_COMPLEX(R, C, F, MAKE)                                                                            \
    static __host__ __device__ __inline__ C make_##C(R r, R i) { return MAKE(r, i); }                          \
    static __host__ __device__ __inline__ R cuCreal##F(C x) { return x.x; }                                    \
    static __host__ __device__ __inline__ R cuCimag##F(C x) { return x.y; }                                    \
    static __host__ __device__ __inline__ C cuConj##F(C x) { return MAKE(x.x, -x.y); }                         \
    static __host__ __device__ __inline__ C cuCadd##F(C x, C y) { return MAKE(x.x + y.x, x.y + y.y); }         \
    static __host__ __device__ __inline__ C cuCsub##F(C x, C y) { return MAKE(x.x - y.x, x.y - y.y); }         \
    static __host__ __device__ __inline__ C cuCmul##F(C x, C y)                                                \
    {                                                                                                          \
        return MAKE(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);                                             \
    }                                                                                                          \
    static __host__ __device__ __inline__ C cuCdiv##F(C x, C y) /* scaled, as the toolkit's */                 \
    {                                                                                                          \
        R s = std::fabs(y.x) + std::fabs(y.y), a = x.x / s, b = x.y / s, c = y.x / s, d = y.y / s;             \
        R n = c * c + d * d;                                                                                   \
        return MAKE((a * c + b * d) / n, (b * c - a * d) / n);                                                 \
    }                                                                                                          \
    static __host__ __device__ __inline__ R cuCabs##F(C x) { return std::hypot(x.x, x.y); }                    \
    static __host__ __device__ __inline__ C cuCfma##F(C x, C y, C z) { return cuCadd##F(cuCmul##F(x, y), z); }
SIMT_COMPLEX(float, cuFloatComplex, f, make_float2)
SIMT_COMPLEX(double, cuDoubleComplex, , make_double2)
#undef SIMT_COMPLEX

static __host__ __device__ __inline__ cuComplex make_cuComplex(float r, float i) { return make_float2(r, i); }
static __host__ __device__ __inline__ cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex x)
{
    return make_double2(x.x, x.y);
}
static __host__ __device__ __inline__ cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex x)
{
    return make_float2(float(x.x), float(x.y));
}

#endif
