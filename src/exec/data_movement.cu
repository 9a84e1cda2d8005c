/* data_movement.cu - data_movement.c on a GPU: the same exec_element.h, one thread an element. */
#include "exec/exec_element.h"
#include "exec/data_movement_kernels.h"

#define EACH(i, n)                                                                                                     \
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < (n); i += (uint64_t)gridDim.x * blockDim.x)
#define KERNEL extern "C" __global__ void __launch_bounds__(MOVEMENT_THREADS)

static __device__ void *at(uint64_t addr, uint32_t dtype, uint64_t i, uint32_t dims, const int64_t *size,
                           const int64_t *stride)
{
    return (uint8_t *)addr + px_offset(i, dims, size, stride) * px_bytes(dtype);
}

#ifdef __MUSA_ARCH__ /* MUSA knows compare-and-swap alone on 64 bits */
static __device__ void add(uint64_t *to, uint64_t n)
{
    unsigned long long *p = (unsigned long long *)to, was, seen = *p;

    do
        was = seen, seen = atomicCAS(p, was, was + n);
    while (seen != was);
}
#else
static __device__ void add(uint64_t *to, uint64_t n)
{
    atomicAdd((unsigned long long *)to, (unsigned long long)n);
}
#endif

KERNEL movement_set(const struct wire_memset m)
{
    EACH(i, m.count)
        px_copy_bytes((uint8_t *)m.addr + i * m.width, m.value, (int)m.width);
}

KERNEL movement_fill(const struct wire_fill m)
{
    EACH(i, px_count(m.dims, m.size))
        px_copy_bytes(at(m.addr, m.dtype, i, m.dims, m.size, m.stride), m.value, px_bytes(m.dtype));
}

KERNEL movement_strided(const struct movement_strided_args a)
{
    const struct wire_strided &m = a.m;
    unsigned long long changed = 0;

    EACH(i, px_count(m.dims, m.size))
        changed += px_cast(at(m.to, m.to_dtype, i, m.dims, m.size, m.to_stride), m.to_dtype,
                           at(m.from, m.from_dtype, i, m.dims, m.size, m.from_stride), m.from_dtype);
    if (changed)
        add(a.changed, changed);
}

KERNEL movement_arange(const struct wire_arange m)
{
    EACH(i, m.count)
        px_arange((uint8_t *)m.addr + i * px_bytes(m.dtype), &m, i);
}

KERNEL movement_random(const struct wire_random m)
{
    EACH(i, m.count)
        px_random((uint8_t *)m.addr + i * px_bytes(m.dtype), &m, i);
}

KERNEL movement_equal(const struct movement_equal_args a)
{
    const struct wire_equal &m = a.m;

    EACH(i, px_count(m.dims, m.size))
        if (!px_near(at(m.a, m.a_dtype, i, m.dims, m.size, m.a_stride), m.a_dtype,
                     at(m.b, m.b_dtype, i, m.dims, m.size, m.b_stride), m.b_dtype, &m))
            add(a.differ, 1);
}

/* Keeps the device busy while the host enqueues what is to be timed. No card of MUSA's has a clock above 2 GHz, and its
 * compiler reads no PTX. */
KERNEL movement_spin(const struct movement_spin_args a)
{
#ifdef __MUSACC__
    long long start = clock64();

    while ((uint64_t)(clock64() - start) < 2 * a.ns)
        ;
#else
    uint64_t start, now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < a.ns);
#endif
}
