/* swiglu.c - silu(gate) * up (Shazeer, arXiv 2002.05202). Compiled by isa_*.c.
 * With s = sigmoid(g): silu = g s, d silu / dg = s (1 + g (1 - s)). */
#ifdef ISA_NAME
#include "nn/ops/ops.h"

INLINE vf v_sigmoid(vf x) { return 1.0f / (1.0f + v_exp(-x)); }

/* The tail of a row is done in a padded register-sized copy, so that it has the same bits as the body. */
INLINE vf v_load_part(const float *p, int n)
{
    float t[VL] = {0};
    if (n >= VL)
        return v_load(p);
    memcpy(t, p, (size_t)n * sizeof *p);
    return v_load(t);
}

/* Stores the first n lanes. */
INLINE void v_store_part(float *p, vf x, int n)
{
    float t[VL];
    if (n >= VL) {
        v_store(p, x);
        return;
    }
    v_store(t, x);
    memcpy(p, t, (size_t)n * sizeof *p);
}

/* act (T, f) = silu(g) u of gu (T, 2f). */
static void swiglu_mt(int T, int f, const float *gu, float *act)
{
#pragma omp parallel for schedule(dynamic, 32) if ((double)T * f > 1e5)
    for (int t = 0; t < T; t++) {
        const float *g = gu + (ptrdiff_t)t * 2 * f, *u = g + f;
        float *a = act + (ptrdiff_t)t * f;
        for (int i = 0; i < f; i += VL) {
            vf x = v_load_part(g + i, f - i);
            v_store_part(a + i, x * v_sigmoid(x) * v_load_part(u + i, f - i), f - i);
        }
    }
}

/* dgu (T, 2f) of dact (T, f); act gets silu(g) u again. */
static void swiglu_backward_mt(int T, int f, const float *gu, const float *dact, float *dgu, float *act)
{
#pragma omp parallel for schedule(dynamic, 32) if ((double)T * f > 1e5)
    for (int t = 0; t < T; t++) {
        const float *g = gu + (ptrdiff_t)t * 2 * f, *u = g + f, *da = dact + (ptrdiff_t)t * f;
        float *dg = dgu + (ptrdiff_t)t * 2 * f, *du = dg + f, *a = act + (ptrdiff_t)t * f;
        for (int i = 0; i < f; i += VL) {
            int n = f - i;
            vf x = v_load_part(g + i, n), up = v_load_part(u + i, n), d = v_load_part(da + i, n);
            vf s = v_sigmoid(x), silu = x * s;
            v_store_part(a + i, silu * up, n);
            v_store_part(du + i, d * silu, n);
            v_store_part(dg + i, d * up * (s * (1.0f + x * (1.0f - s))), n);
        }
    }
}
#endif
