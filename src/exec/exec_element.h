/* exec_element.h - one element of a plumbing request, the same text for the host and the GPU: where it lies, what a
 * cast makes of it, what a random fill draws. Plain C11 and CUDA C++. */
#ifndef MC_EXEC_EXEC_ELEMENT_H
#define MC_EXEC_EXEC_ELEMENT_H

#include <math.h>

#include "device/element.h"
#include "exec/wire.h"

/* Bytes of one element. */
EL_FN int px_bytes(uint32_t dtype)
{
    switch (dtype) {
    case EL_BOOL: case EL_U8: case EL_I8: case EL_F8E4: case EL_F8E5: return 1;
    case EL_I16: case EL_F16: case EL_BF16: return 2;
    case EL_I32: case EL_F32: return 4;
    case EL_C128: return 16;
    default: return 8;
    }
}

EL_FN bool px_is_float(uint32_t dtype)
{
    return (dtype >= EL_F16 && dtype <= EL_F64) || dtype == EL_F8E4 || dtype == EL_F8E5;
}

EL_FN bool px_is_complex(uint32_t dtype)
{
    return dtype == EL_C64 || dtype == EL_C128;
}

/* Offset in elements of the view's i-th element, row-major. */
EL_FN int64_t px_offset(uint64_t i, uint32_t dims, const int64_t *size, const int64_t *stride)
{
    int64_t at = 0;

    for (uint32_t d = dims; d-- > 0;) {
        uint64_t n = (uint64_t)size[d];

        at += (int64_t)(i % n) * stride[d];
        i /= n;
    }
    return at;
}

/* Elements of a view. */
EL_FN uint64_t px_count(uint32_t dims, const int64_t *size)
{
    uint64_t n = 1;

    for (uint32_t d = 0; d < dims; d++)
        n *= (uint64_t)size[d];
    return n;
}

/* Writes an integer as an element of an integer dtype. */
EL_FN void px_put_int(void *p, uint32_t dtype, int64_t v)
{
    switch (dtype) {
    case EL_BOOL: *(uint8_t *)p = v != 0; break;
    case EL_U8: case EL_I8: *(uint8_t *)p = (uint8_t)v; break;
    case EL_I16: *(uint16_t *)p = (uint16_t)v; break;
    case EL_I32: *(uint32_t *)p = (uint32_t)v; break;
    case EL_F16: *(uint16_t *)p = f16_from_f32((float)v); break;
    case EL_BF16: *(uint16_t *)p = bf16_from_f32((float)v); break;
    case EL_F8E4: *(uint8_t *)p = f8e4_from_f32((float)v); break;
    case EL_F8E5: *(uint8_t *)p = f8e5_from_f32((float)v); break;
    case EL_F32: *(float *)p = (float)v; break;
    case EL_F64: *(double *)p = (double)v; break;
    default: *(int64_t *)p = v;
    }
}

/* A number to an integer: cut off, and held within int64. */
EL_FN int64_t px_cut(double v)
{
    return v != v ? 0 : v >= 9.2233720368547748e18 ? INT64_MAX : v <= -9.2233720368547758e18 ? INT64_MIN : (int64_t)v;
}

/* Writes v, rounded to the element's dtype. */
EL_FN void px_put(void *p, uint32_t dtype, double v)
{
    switch (dtype) {
    case EL_BOOL: *(uint8_t *)p = v != 0; break;
    case EL_F16: *(uint16_t *)p = f16_from_f32((float)v); break;
    case EL_BF16: *(uint16_t *)p = bf16_from_f32((float)v); break;
    case EL_F8E4: *(uint8_t *)p = f8e4_from_f32((float)v); break;
    case EL_F8E5: *(uint8_t *)p = f8e5_from_f32((float)v); break;
    case EL_F32: *(float *)p = (float)v; break;
    case EL_F64: *(double *)p = v; break;
    default: px_put_int(p, dtype, px_cut(v));
    }
}

EL_FN void px_copy_bytes(void *to, const void *from, int n)
{
    for (int i = 0; i < n; i++)
        ((uint8_t *)to)[i] = ((const uint8_t *)from)[i];
}

/* Whether a cast that is no cast between floating types kept the value. */
EL_FN bool px_kept(const void *to, uint32_t to_dtype, const void *from, uint32_t from_dtype)
{
    double a = el_value(to, (int)to_dtype, 0), b = el_value(from, (int)from_dtype, 0);

    if (!px_is_float(to_dtype) && !px_is_float(from_dtype))
        return el_int(to, (int)to_dtype, 0) == el_int(from, (int)from_dtype, 0);
    return a == b;
}

/* One element, cast where the types differ. Returns 1 if the value changed and that is not a rounding of floats. A
 * whole number that does not fit leaves 0x80 in every byte: what is left of it would be arithmetic. */
EL_FN int px_cast(void *to, uint32_t to_dtype, const void *from, uint32_t from_dtype)
{
    if (to_dtype == from_dtype) {
        px_copy_bytes(to, from, px_bytes(to_dtype));
        return 0;
    }
    if (px_is_complex(to_dtype)) { /* from the other complex type */
        for (int k = 0; k < 2; k++) {
            double v = el_value(from, (int)from_dtype, k);

            if (to_dtype == EL_C64)
                ((float *)to)[k] = (float)v;
            else
                ((double *)to)[k] = v;
        }
        return 0;
    }
    if (px_is_float(from_dtype))
        px_put(to, to_dtype, el_value(from, (int)from_dtype, 0));
    else
        px_put_int(to, to_dtype, el_int(from, (int)from_dtype, 0));
    if ((px_is_float(to_dtype) && px_is_float(from_dtype)) || px_kept(to, to_dtype, from, from_dtype))
        return 0;
    for (int i = 0; i < px_bytes(to_dtype) && !px_is_float(to_dtype) && !px_is_float(from_dtype); i++)
        ((uint8_t *)to)[i] = 0x80;
    return 1;
}

/* True where two elements are equal within m's tolerances, or both NaN where m says so. */
EL_FN bool px_near(const void *a, uint32_t a_dtype, const void *b, uint32_t b_dtype, const struct wire_equal *m)
{
    if (!px_is_float(a_dtype) && !px_is_float(b_dtype) && m->rtol == 0 && m->atol == 0)
        return el_int(a, (int)a_dtype, 0) == el_int(b, (int)b_dtype, 0);
    for (int k = 0; k < (px_is_complex(a_dtype) ? 2 : 1); k++) {
        double x = el_value(a, (int)a_dtype, k), y = el_value(b, (int)b_dtype, k);

        if (x != y && !(m->equal_nan && x != x && y != y) && !(fabs(x - y) <= m->atol + m->rtol * fabs(y)))
            return false;
    }
    return true;
}

/* ---- random: Philox 4x32-10, counter (i, offset), key seed ---- */

struct px_words {
    uint32_t v[4];
};

/* Philox4x32-10: four words of counter (i, offset) under the key 'seed', as PyTorch's generator on a device draws
 * them. */
EL_FN struct px_words px_philox(uint64_t seed, uint64_t i, uint64_t offset)
{
    uint32_t c0 = (uint32_t)i, c1 = (uint32_t)(i >> 32), c2 = (uint32_t)offset, c3 = (uint32_t)(offset >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    struct px_words w;

    for (int r = 0; r < 10; r++) {
        uint64_t a = 0xd2511f53ull * c0, b = 0xcd9e8d57ull * c2;

        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    w.v[0] = c0, w.v[1] = c1, w.v[2] = c2, w.v[3] = c3;
    return w;
}

/* Writes element i of a draw, as PyTorch's generator on a device gives it. */
EL_FN void px_random(void *to, const struct wire_random *m, uint64_t i)
{
    struct px_words w = px_philox(m->seed, i, m->offset);
    double u = (double)(w.v[0] >> 8) * (1.0 / 16777216.0), t = (double)((w.v[1] >> 8) + 1) * (1.0 / 16777216.0);
    uint64_t bits = (uint64_t)w.v[0] << 32 | w.v[1];

    if (m->kind == WIRE_INTEGERS)
        px_put_int(to, m->dtype, m->lo + (int64_t)(bits % ((uint64_t)m->hi - (uint64_t)m->lo)));
    else if (m->kind == WIRE_NORMAL)
        px_put(to, m->dtype, m->a + m->b * sqrt(-2.0 * log(t)) * cos(6.283185307179586 * u));
    else
        px_put(to, m->dtype, m->a + (m->b - m->a) * u);
}

/* Writes element i of an arithmetic sequence. */
EL_FN void px_arange(void *to, const struct wire_arange *m, uint64_t i)
{
    if (px_is_float(m->dtype))
        px_put(to, m->dtype, m->start + (double)i * m->step);
    else
        px_put_int(to, m->dtype, (int64_t)((uint64_t)m->start_i + i * (uint64_t)m->step_i));
}

#endif
