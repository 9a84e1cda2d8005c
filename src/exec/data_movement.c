/* data_movement.c - see data_movement.h. */
#include "exec/data_movement.h"

#include <string.h>

#include "exec/exec_element.h"

/* Repeats a value of m->width bytes m->count times. */
void movement_host_set(void *to, const struct wire_memset *m)
{
    uint8_t *p = to;

    if (m->width == 1) {
        memset(p, m->value[0], m->count);
        return;
    }
    for (uint64_t i = 0; i < m->count; i++)
        memcpy(p + i * m->width, m->value, m->width);
}

/* Writes one value to all elements of a view. */
void movement_host_fill(void *to, const struct wire_fill *m)
{
    uint64_t n = px_count(m->dims, m->size);
    int w = px_bytes(m->dtype);

    for (uint64_t i = 0; i < n; i++)
        memcpy((uint8_t *)to + px_offset(i, m->dims, m->size, m->stride) * w, m->value, (size_t)w);
}

/* Row-major on both sides and of one type: one copy. */
static bool movement_is_flat(uint32_t dims, const int64_t *size, const int64_t *stride)
{
    int64_t want = 1;

    for (uint32_t d = dims; d-- > 0;) {
        if (size[d] > 1 && stride[d] != want)
            return false;
        want *= size[d];
    }
    return true;
}

uint64_t movement_host_strided(void *to, const void *from, const struct wire_strided *m)
{
    uint64_t n = px_count(m->dims, m->size), changed = 0;
    int to_w = px_bytes(m->to_dtype), from_w = px_bytes(m->from_dtype);

    if (m->to_dtype == m->from_dtype && movement_is_flat(m->dims, m->size, m->to_stride) &&
        movement_is_flat(m->dims, m->size, m->from_stride)) {
        memcpy(to, from, n * (uint64_t)to_w);
        return 0;
    }
    for (uint64_t i = 0; i < n; i++)
        changed += (uint64_t)px_cast((uint8_t *)to + px_offset(i, m->dims, m->size, m->to_stride) * to_w, m->to_dtype,
                                     (const uint8_t *)from + px_offset(i, m->dims, m->size, m->from_stride) * from_w,
                                     m->from_dtype);
    return changed;
}

void movement_host_arange(void *to, const struct wire_arange *m)
{
    for (uint64_t i = 0; i < m->count; i++)
        px_arange((uint8_t *)to + i * (uint64_t)px_bytes(m->dtype), m, i);
}

void movement_host_random(void *to, const struct wire_random *m)
{
    for (uint64_t i = 0; i < m->count; i++)
        px_random((uint8_t *)to + i * (uint64_t)px_bytes(m->dtype), m, i);
}

bool movement_host_equal(const void *a, const void *b, const struct wire_equal *m)
{
    uint64_t n = px_count(m->dims, m->size);
    int a_w = px_bytes(m->a_dtype), b_w = px_bytes(m->b_dtype);

    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *p = (const uint8_t *)a + px_offset(i, m->dims, m->size, m->a_stride) * a_w;
        const uint8_t *q = (const uint8_t *)b + px_offset(i, m->dims, m->size, m->b_stride) * b_w;

        if (!px_near(p, m->a_dtype, q, m->b_dtype, m))
            return false;
    }
    return true;
}
