/* timing.cu - what runner/timing.py does on the device around a timed call: waiting before it, drawing its data.
 * Built to build/lib/timing.fatbin; where that is missing, timing.py does the same with torch's operators (other
 * random numbers: both sides of a measurement must then do without). */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "device/element.h" /* el_mix; nothing of floating point, which this file is not compiled for */

typedef unsigned long long u64; /* what atomicAdd takes */

/* Keeps the device busy for ns nanoseconds, without touching memory; for one thread. By the device's clock of
 * nanoseconds: cycles last as long as the SM's clock has it, and what a call costs beside forward must not change
 * with that. Cycles are the bound, should that clock stand still: more of them than a nanosecond has on any device.
 * */
extern "C" __global__ void timing_spin(u64 ns)
{
    long long first = clock64(), most = (long long)ns * 8 + 100000;
    u64 start, now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < ns && clock64() - first < most);
}

/* x[i] = base[i] * s * u, u uniform in [0.5, 1): 24 bits of a counter's hash keyed by seed. */
template <typename T, typename F>
static __device__ void draw(T *x, const T *base, u64 n, u64 seed, float s)
{
    u64 step = (u64)gridDim.x * blockDim.x;

    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n; i += step) {
        u64 h = el_mix(seed >> 7, seed + i);
        F u = (F)0.5 + (F)(uint32_t)(h >> 40) * (F)2.98023223876953125e-8; /* 2^-25 */

        x[i] = (T)((F)base[i] * ((F)s * u));
    }
}

extern "C" __global__ void timing_draw_f32(float *x, const float *base, u64 n, u64 seed, float s)
{
    draw<float, float>(x, base, n, seed, s);
}

extern "C" __global__ void timing_draw_f64(double *x, const double *base, u64 n, u64 seed, float s)
{
    draw<double, double>(x, base, n, seed, s);
}

extern "C" __global__ void timing_draw_f16(__half *x, const __half *base, u64 n, u64 seed, float s)
{
    draw<__half, float>(x, base, n, seed, s);
}

extern "C" __global__ void timing_draw_bf16(__nv_bfloat16 *x, const __nv_bfloat16 *base, u64 n, u64 seed, float s)
{
    draw<__nv_bfloat16, float>(x, base, n, seed, s);
}
