/* tensor.c - matrices of a warp: mma, ldmatrix, stmatrix. All lanes come together; the last one to come does the work
 * of all, so operands and results may lie on the lanes' stacks. Which lane holds which element: NVIDIA, "PTX ISA",
 * "Matrix fragments for mma.m16n8k*" and "ldmatrix". */
#include <string.h>

#include "runtime.h"

#if defined(__aarch64__)
typedef __fp16 f16;
#else
typedef _Float16 f16;
#endif

enum mma_type { MMA_F32, MMA_F16, MMA_BF16, MMA_TF32, MMA_S8, MMA_U8, MMA_E4M3, MMA_E5M2, MMA_S32 };
enum { ROWS = 16, COLS = 8, MAX_K = 32, LANES = 32 };

struct mma_call {
    int k, bits, a, b, c;
    const uint32_t *abc;
    uint32_t *d;
};

static float of_bits(uint32_t b)
{
    union { uint32_t b; float f; } u = {b};

    return u.f;
}

static float of_f16(uint32_t b)
{
    union { uint16_t b; f16 f; } u = {(uint16_t)b};

    return (float)u.f;
}

/* Exponent of e bits, mantissa of m. The largest code of e4m3 is NaN; e5m2 is the upper half of a half. */
static float of_fp8(uint32_t b, int e, int m)
{
    uint32_t exp = b >> m & ((1u << e) - 1), man = b & ((1u << m) - 1);
    float scale = 1.0f, v;

    if (e == 5)
        return of_f16(b << 8);
    if ((b & 0x7f) == 0x7f)
        return __builtin_nanf("");
    v = (float)(exp ? man + (1u << m) : man);
    for (int i = (int)(exp ? exp : 1) - 7 - m; i != 0; i += i < 0 ? 1 : -1)
        scale *= i < 0 ? 0.5f : 2.0f;
    return b & 0x80 ? -v * scale : v * scale;
}

static float element(int type, uint32_t b)
{
    switch (type) {
    case MMA_F16: return of_f16(b);
    case MMA_BF16: return of_bits(b << 16);
    case MMA_TF32: return of_bits(b & ~0x1fffu);
    case MMA_S8: return (float)(int8_t)b;
    case MMA_U8: return (float)(uint8_t)b;
    case MMA_E4M3: return of_fp8(b & 255, 4, 3);
    case MMA_E5M2: return of_fp8(b & 255, 5, 2);
    default: return of_bits(b);
    }
}

static uint32_t half_bits(float v)
{
    union { f16 f; uint16_t b; } u = {(f16)v};

    return u.b;
}

/* Registers of A: rows g and g+8, then the next columns; of B: down the columns. e elements lie in a register. */
static void gather(const struct mma_call *const *all, const struct mma_call *m, float a[ROWS][MAX_K],
    float b[MAX_K][COLS])
{
    int e = 32 / m->bits, n_a = m->k * ROWS / (LANES * e), n_b = m->k * COLS / (LANES * e);

    for (int l = 0; l < LANES; l++)
        for (int r = 0; r < n_a + n_b; r++) {
            uint32_t word = all[l] ? all[l]->abc[r] : 0;
            int g = l / 4, t = l % 4, q = r - n_a;

            for (int i = 0; i < e; i++) {
                uint32_t bits = e == 1 ? word : word >> (i * m->bits) & ((1u << m->bits) - 1);

                if (r < n_a)
                    a[g + 8 * (r & 1)][e * t + 4 * e * (r >> 1) + i] = element(m->a, bits);
                else
                    b[e * t + 4 * e * q + i][g] = element(m->b, bits);
            }
        }
}

/* Sums of 8-bit integers stay below 2^24 here, so floats hold them exactly. */
static void spread(const struct mma_call *m, int lane, float sum[ROWS][COLS])
{
    int e = 32 / m->bits, at = m->k * (ROWS + COLS) / (LANES * e), g = lane / 4, t = lane % 4;
    const uint32_t *c = m->abc + at;

    for (int h = 0; h < 2; h++) {
        const float *s = &sum[g + 8 * h][2 * t];

        if (m->c == MMA_F16) {
            m->d[h] = half_bits(of_f16(c[h] & 0xffff) + s[0]) | half_bits(of_f16(c[h] >> 16) + s[1]) << 16;
            continue;
        }
        for (int i = 0; i < 2; i++) {
            union { float f; uint32_t b; } u = {of_bits(c[2 * h + i]) + s[i]};

            m->d[2 * h + i] = m->c == MMA_S32 ? c[2 * h + i] + (uint32_t)(int32_t)s[i] : u.b;
        }
    }
}

static void multiply(const struct warp_op *o)
{
    static float a[ROWS][MAX_K], b[MAX_K][COLS], sum[ROWS][COLS]; /* one launch at a time */
    const struct mma_call *all[LANES], *m = NULL;

    for (int l = 0; l < LANES; l++) {
        all[l] = o->arrived & LANE_BIT(l) ? (const struct mma_call *)(uintptr_t)o->value[l] : NULL;
        m = all[l] ? all[l] : m;
    }
    gather(all, m, a, b);
    memset(sum, 0, sizeof sum);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < m->k; k++)
            for (int j = 0; j < COLS; j++)
                sum[i][j] += a[i][k] * b[k][j];
    for (int l = 0; l < LANES; l++)
        if (all[l])
            spread(all[l], l, sum);
}

void simt_mma(int k, int bits, int a, int b, int c, const uint32_t *abc, uint32_t *d);
void simt_ldmatrix(const void *row, int n, int trans, uint32_t *d);
void simt_stmatrix(void *row, int n, int trans, const uint32_t *s);

void simt_mma(int k, int bits, int a, int b, int c, const uint32_t *abc, uint32_t *d)
{
    struct mma_call m = {k, bits, a, b, c, abc, d};

    if (k > MAX_K || k * ROWS < LANES * 32 / bits) {
        finding("unsupported", __builtin_return_address(0), true, "mma of depth %d is not emulated", k);
        abort_kernel();
    }
    warp_together(&m, multiply, "mma", __builtin_return_address(0));
}

/* ---- ldmatrix, stmatrix: row r of matrix i is where lane 8i + r says ---- */

struct rows_call {
    char *row;
    int n;
    bool trans, store;
    uint32_t *regs;
};

/* The two elements of register i of a lane, as (row, column) of matrix i. */
static void move_two(const struct rows_call *const *all, const struct rows_call *m, int lane, int i)
{
    uint16_t v[2];

    memcpy(v, &m->regs[i], 4);
    for (int k = 0; k < 2; k++) {
        int r = m->trans ? 2 * (lane % 4) + k : lane / 4, c = m->trans ? lane / 4 : 2 * (lane % 4) + k;
        char *p = all[8 * i + r] ? all[8 * i + r]->row + 2 * c : NULL;

        if (p && m->store)
            memcpy(p, &v[k], 2);
        else if (p)
            memcpy(&v[k], p, 2);
    }
    if (!m->store)
        memcpy(&m->regs[i], v, 4);
}

static void move_rows(const struct warp_op *o)
{
    const struct rows_call *all[LANES];

    for (int l = 0; l < LANES; l++)
        all[l] = o->arrived & LANE_BIT(l) ? (const struct rows_call *)(uintptr_t)o->value[l] : NULL;
    for (int l = 0; l < LANES; l++)
        for (int i = 0; all[l] && i < all[l]->n; i++)
            move_two(all, all[l], l, i);
}

static void rows(struct rows_call *m, const char *what, const void *pc)
{
    if (run.current && run.current->thread % WARP < 8 * m->n)
        check_matrix_row(m->row, m->store, pc);
    warp_together(m, move_rows, what, pc);
}

void simt_ldmatrix(const void *row, int n, int trans, uint32_t *d)
{
    struct rows_call m = {(char *)(uintptr_t)row, n, trans != 0, false, d};

    rows(&m, "ldmatrix", __builtin_return_address(0));
}

void simt_stmatrix(void *row, int n, int trans, const uint32_t *s)
{
    struct rows_call m = {row, n, trans != 0, true, (uint32_t *)(uintptr_t)s};

    rows(&m, "stmatrix", __builtin_return_address(0));
}

/* ---- wmma: lane l holds elements l, l + 32, ... of each matrix, row by row ---- */

enum { WMMA_MAX = 32 };

struct wmma_call {
    int m, n, k;
    const float *a, *b;
    float *acc;
};

static void wmma_multiply(const struct warp_op *o)
{
    static float a[WMMA_MAX * WMMA_MAX], b[WMMA_MAX * WMMA_MAX], c[WMMA_MAX * WMMA_MAX];
    const struct wmma_call *all[LANES], *w = NULL;

    memset(a, 0, sizeof a), memset(b, 0, sizeof b), memset(c, 0, sizeof c);
    for (int l = 0; l < LANES; l++) {
        all[l] = o->arrived & LANE_BIT(l) ? (const struct wmma_call *)(uintptr_t)o->value[l] : NULL;
        if (!all[l])
            continue;
        w = all[l];
        for (int i = 0; i < w->m * w->k / LANES; i++)
            a[l + LANES * i] = w->a[i];
        for (int i = 0; i < w->k * w->n / LANES; i++)
            b[l + LANES * i] = w->b[i];
        for (int i = 0; i < w->m * w->n / LANES; i++)
            c[l + LANES * i] = w->acc[i];
    }
    for (int i = 0; i < w->m; i++)
        for (int k = 0; k < w->k; k++)
            for (int j = 0; j < w->n; j++)
                c[i * w->n + j] += a[i * w->k + k] * b[k * w->n + j];
    for (int l = 0; l < LANES; l++)
        for (int i = 0; all[l] && i < w->m * w->n / LANES; i++)
            all[l]->acc[i] = c[l + LANES * i];
}

void simt_wmma(int m, int n, int k, const float *a, const float *b, float *acc);
void simt_wmma(int m, int n, int k, const float *a, const float *b, float *acc)
{
    struct wmma_call w = {m, n, k, a, b, acc};

    warp_together(&w, wmma_multiply, "wmma", __builtin_return_address(0));
}
