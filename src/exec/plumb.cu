/* plumb.cu - plumb.c on a GPU: the same element.h, one thread an element. */
#include "exec/element.h"
#include "exec/plumb_kernels.h"

#define EACH(i, n)                                                                                                     \
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < (n); i += (uint64_t)gridDim.x * blockDim.x)
#define KERNEL extern "C" __global__ void __launch_bounds__(PLUMB_THREADS)

KERNEL plumb_set(const struct wire_memset m)
{
    EACH(i, m.count)
        px_copy_bytes((uint8_t *)m.addr + i * m.width, m.value, (int)m.width);
}

KERNEL plumb_fill(const struct wire_fill m)
{
    EACH(i, px_count(m.dims, m.size)) {
        int w = px_bytes(m.dtype);

        px_copy_bytes((uint8_t *)m.addr + px_offset(i, m.dims, m.size, m.stride) * w, m.value, w);
    }
}

KERNEL plumb_strided(const struct plumb_strided_args a)
{
    const struct wire_strided &m = a.m;
    unsigned long long changed = 0;

    EACH(i, px_count(m.dims, m.size))
        changed += px_cast((uint8_t *)m.to + px_offset(i, m.dims, m.size, m.to_stride) * px_bytes(m.to_dtype), m.to_dtype,
                           (const uint8_t *)m.from + px_offset(i, m.dims, m.size, m.from_stride) * px_bytes(m.from_dtype),
                           m.from_dtype);
    if (changed)
        atomicAdd((unsigned long long *)a.changed, changed);
}

KERNEL plumb_arange(const struct wire_arange m)
{
    EACH(i, m.count)
        px_arange((uint8_t *)m.addr + i * px_bytes(m.dtype), &m, i);
}

KERNEL plumb_random(const struct wire_random m)
{
    EACH(i, m.count)
        px_random((uint8_t *)m.addr + i * px_bytes(m.dtype), &m, i);
}

KERNEL plumb_equal(const struct plumb_equal_args a)
{
    const struct wire_equal &m = a.m;

    EACH(i, px_count(m.dims, m.size))
        if (!px_near((const uint8_t *)m.a + px_offset(i, m.dims, m.size, m.a_stride) * px_bytes(m.a_dtype), m.a_dtype,
                     (const uint8_t *)m.b + px_offset(i, m.dims, m.size, m.b_stride) * px_bytes(m.b_dtype), m.b_dtype, &m))
            atomicAdd((unsigned long long *)a.differ, 1ull);
}

/* Keeps the device busy while the host enqueues what is to be timed. */
KERNEL plumb_spin(const struct plumb_spin_args a)
{
    uint64_t start, now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < a.ns);
}
