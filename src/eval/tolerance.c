/* tolerance.c - see tolerance.h. */
#include "eval/tolerance.h"

#include <math.h>

static double rel_of(enum dtype d)
{
    switch (d) {
    case DT_F64:
    case DT_C128: return 1e-12;
    case DT_F16: return 0x1p-9;  /* 4 u */
    case DT_BF16: return 0x1p-6; /* 4 u */
    default: return 2e-5;        /* 336 u of fp32 */
    }
}

struct tolerance tolerance_strict(enum dtype dtype, const struct noise *n)
{
    double m = fmin(fmax(n->fan_in, 1), 0x1p20), k = fmax(32, 4 * sqrt(m)), noise = fmax(n->n1, n->n2);
    double cap = n->max_abs / 256;
    struct tolerance t = {.rel = rel_of(dtype), .abs = k * noise, .usable = true};

    if (!dt_is_float(dtype))
        return (struct tolerance){.usable = true};
    if (!(noise >= 0) || (n->max_abs > 0 && t.abs > 16 * cap))
        t.usable = false;
    if (n->max_abs > 0)
        t.abs = fmin(t.abs, cap);
    return t;
}

struct tolerance tolerance_kernelbench(enum dtype dtype)
{
    double t = dtype == DT_F16 || dtype == DT_BF16 ? 1e-2 : 1e-4;

    return (struct tolerance){.abs = t, .rel = t, .usable = true, .allclose = true};
}
