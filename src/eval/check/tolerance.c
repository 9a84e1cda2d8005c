/* tolerance.c - see tolerance.h. */
#include "eval/check/tolerance.h"

#include <math.h>

#define FAN_IN_MAX 0x1p20 /* of K */
#define SUM_MAX 0x1p24    /* terms: a serial fp32 sum of more stands still */

/* Of a floating type. */
struct precision {
    double u;    /* half the distance of 1 and the next value: what one rounding does at most, relative */
    double rel;  /* of an answer */
    double tiny; /* distance of the values next to 0; where kernels flush subnormals, the smallest normal one */
    double k1, k2; /* k2 0: single or double precision, grows with the fan-in */
};

/* The dtype's rounding and smallest number, and what the tolerance allows of them. */
static const struct precision *tolerance_precision_of(enum dtype d)
{
    static const struct precision f16 = {0x1p-11, 0x1p-10, 0x1p-24, 4, 2}, bf16 = {0x1p-8, 0x1p-7, 0x1p-126, 4, 1},
                                  f32 = {0x1p-24, 2e-5, 0x1p-126, 32, 0}, f64 = {0x1p-53, 1e-12, 0x1p-1022, 32, 0};

    static const struct precision f8e4 = {0x1p-4, 0, 0x1p-149, 4, 1}, f8e5 = {0x1p-3, 0, 0x1p-149, 4, 1};

    switch (d) {
    case DT_F8E4: return &f8e4;
    case DT_F8E5: return &f8e5;
    case DT_F64:
    case DT_C128: return &f64;
    case DT_F16: return &f16;
    case DT_BF16: return &bf16;
    default: return &f32;
    }
}

/* The relative tolerance for sums of fan_in terms, at least 'least'. */
static double tolerance_rel_of(const struct precision *p, double fan_in, double least)
{
    if (p->rel == 0) /* 8 bits: the reference says what rounding leaves open */
        return least;
    return p->k2 > 0 ? p->rel : fmax(fmax(p->rel, least), 2 * p->u * sqrt(fmin(fan_in, SUM_MAX)));
}

/* Can a right answer and zeros be told apart? */
static bool tolerance_decides(const struct tolerance *t, double max_abs)
{
    return t->usable && max_abs > t->abs + t->rel * max_abs;
}

/* Tolerance of a task whose outputs are floating numbers. */
static struct tolerance tolerance_floating(const struct precision *p, const struct precision *low,
                                           const struct noise *n)
{
    double m = fmax(n->fan_in, 1), k2 = low->k2 > 0 ? low->k2 : fmax(32, 4 * sqrt(fmin(m, FAN_IN_MAX)));
    double wide = fmax(low->k1 * n->n1, k2 * n->n2), cap = n->max_abs * fmax(0x1p-8, 16 * low->u);
    struct tolerance t = {.rel = tolerance_rel_of(p, m, n->rel), .abs = wide, .usable = n->n1 >= 0 && n->n2 >= 0};

    if (n->max_abs > 0) {
        t.usable = t.usable && fmax(n->n1, n->n2) <= cap / 2 && wide <= 16 * cap && p->tiny <= cap;
        t.abs = fmin(wide, cap);
    }
    t.abs = fmax(t.abs, p->tiny);
    t.decides = tolerance_decides(&t, n->max_abs);
    return t;
}

/* Types of 8 bits hold numbers; nothing is computed in them. */
static bool tolerance_is_stored(enum dtype d)
{
    return d == DT_F8E4 || d == DT_F8E5;
}

struct tolerance tolerance_strict(enum dtype out, enum dtype low, const struct noise *n)
{
    if (!dt_is_float(out))
        return (struct tolerance){.usable = true, .decides = n->max_abs > 0};
    low = tolerance_is_stored(low) ? DT_F32 : low;
    return tolerance_floating(tolerance_precision_of(out), tolerance_precision_of(low), n);
}

struct tolerance tolerance_own(const struct own_tolerance *own, const struct noise *n)
{
    struct tolerance t = {.abs = own->abs, .rel = own->rel, .matched = own->matched, .most = own->most,
                          .usable = true};

    t.decides = tolerance_decides(&t, n->max_abs);
    return t;
}

struct tolerance tolerance_kernelbench(enum dtype dtype)
{
    double t = dtype == DT_F16 || dtype == DT_BF16 ? 1e-2 : 1e-4;

    return (struct tolerance){.abs = t, .rel = t, .usable = true, .decides = true, .allclose = true};
}
