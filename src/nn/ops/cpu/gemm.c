/* gemm.c - matrix product on packed right-hand sides. Compiled by isa_*.c.
 *
 * Why not BLAS: every element of C is one chain over k, in blocks of KC, whatever m, n and the threads are, so that a
 * row has the same bits in any batch; the weights stay packed while sampling; and at these sizes (n and k of a few
 * hundred) it is faster than OpenBLAS. A tile is MR x NR accumulators in registers. */
#ifdef ISA_NAME
#include "nn/ops/ops.h"

#define KC_COLS 256 /* the same for A stored by columns */
#define STRIP 8     /* tiles copied together then */
#define KC 512      /* depth of one block: the panel (KC, NR) stays in L2, the rows of A in L1 */

/* mr and a_cols are constants after inlining: each combination is its own loop. */
INLINE void tile(int mr, bool a_cols, int k, const float *a, ptrdiff_t lda, const float *b, vf acc[MR][NV])
{
    const float *row[MR];

    for (int i = 0; i < mr; i++) {
        row[i] = a_cols ? a + i : a + i * lda;
        for (int j = 0; j < NV; j++)
            acc[i][j] = (vf){0};
    }
    for (int p = 0; p < k; p++) {
        vf b0 = v_load(b), b1 = v_load(b + VL);
#pragma GCC unroll 16
        for (int i = 0; i < mr; i++) {
            vf x = v_splat(a_cols ? a[i] : row[i][p]);
            acc[i][0] += x * b0;
            acc[i][1] += x * b1;
        }
        b += NR;
        if (a_cols)
            a += lda;
    }
}

/* Stores a tile of mr rows and n columns to c; 'add' adds it to what is there. */
INLINE void tile_store(int mr, int n, bool add, vf acc[MR][NV], float *c, ptrdiff_t ldc)
{
    for (int i = 0; i < mr; i++, c += ldc) {
        if (n == NR) {
            v_store(c, add ? v_load(c) + acc[i][0] : acc[i][0]);
            v_store(c + VL, add ? v_load(c + VL) + acc[i][1] : acc[i][1]);
        } else {
            float t[NR];
            v_store(t, acc[i][0]);
            v_store(t + VL, acc[i][1]);
            for (int j = 0; j < n; j++)
                c[j] = add ? c[j] + t[j] : t[j];
        }
    }
}

#define TILE(M)                                                                                                     \
    static void tile_##M(bool a_cols, int n, int k, const float *a, ptrdiff_t lda, const float *b, float *c,       \
                         ptrdiff_t ldc, bool add)                                                                   \
    {                                                                                                               \
        vf acc[MR][NV];                                                                                             \
        if (a_cols)                                                                                                 \
            tile(M, true, k, a, lda, b, acc);                                                                       \
        else                                                                                                        \
            tile(M, false, k, a, lda, b, acc);                                                                      \
        tile_store(M, n, add, acc, c, ldc);                                                                         \
    }
TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6)
#if MR == 14
TILE(7) TILE(8) TILE(9) TILE(10) TILE(11) TILE(12) TILE(13) TILE(14)
#endif

typedef void tile_fn(bool, int, int, const float *, ptrdiff_t, const float *, float *, ptrdiff_t, bool);
static tile_fn *const tiles[MR + 1] = {
    NULL, tile_1, tile_2, tile_3, tile_4, tile_5, tile_6,
#if MR == 14
    tile_7, tile_8, tile_9, tile_10, tile_11, tile_12, tile_13, tile_14,
#endif
};

/* C (m, n) of A (m, k) and packed B; mode: whether C is set or added to. */
static void gemm_part(int m, int n, int k, int packed_k, const float *a, int lda, const float *packed, float *c,
                      int ldc,
                      enum gemm_mode mode)
{
    int n_tiles = (m + MR - 1) / MR;

    for (int k0 = 0; k0 < k; k0 += KC) {
        int kb = k - k0 < KC ? k - k0 : KC;
        for (int t = 0; t < n_tiles; t++) {
            /* even tiles: 64 rows are 13 13 13 13 12, not 14 14 14 14 8 */
            int i0 = (int)((int64_t)m * t / n_tiles), i1 = (int)((int64_t)m * (t + 1) / n_tiles);
            for (int j = 0; j < n; j += NR)
                tiles[i1 - i0](false, n - j < NR ? n - j : NR, kb, a + (ptrdiff_t)i0 * lda + k0, lda,
                               packed + (ptrdiff_t)j * packed_k + (ptrdiff_t)k0 * NR, c + (ptrdiff_t)i0 * ldc + j, ldc,
                               k0 > 0 || mode == GEMM_ADD);
        }
    }
}

static void gemm_rows(int m, int n, int k, const float *a, int lda, const float *packed, float *c, int ldc,
                      enum gemm_mode mode)
{
    gemm_part(m, n, k, k, a, lda, packed, c, ldc, mode);
}

/* Copies n floats; MR of them by a few vector moves. */
INLINE void copy_floats(float *to, const float *from, int n)
{
    if (n == MR)
        memcpy(to, from, MR * sizeof *to); /* constant size: a few vector moves, no call */
    else
        memcpy(to, from, (size_t)n * sizeof *to);
}

/* A stored by columns (k, m) against few panels: read as it lies. */
static void gemm_cols_few(int m, int n, int k, const float *a, int lda, const float *packed, float *c, int ldc,
                          bool add)
{
    for (int k0 = 0; k0 < k; k0 += KC_COLS) {
        int kb = k - k0 < KC_COLS ? k - k0 : KC_COLS;
        for (int i = 0; i < m; i += MR)
            for (int j = 0; j < n; j += NR)
                tiles[m - i < MR ? m - i : MR](true, n - j < NR ? n - j : NR, kb, a + (ptrdiff_t)k0 * lda + i, lda,
                                               packed + (ptrdiff_t)j * k + (ptrdiff_t)k0 * NR,
                                               c + (ptrdiff_t)i * ldc + j, ldc, k0 > 0 || add);
    }
}

/* A stored by columns: each k reads a few neighbouring floats of a far row, so a strip of tiles is first copied to
 * (tile, k, MR). */
static void gemm_cols(int m, int n, int k, const float *a, int lda, const float *packed, float *c, int ldc,
                      enum gemm_mode mode)
{
    float strip[STRIP * MR * KC_COLS] __attribute__((aligned(64)));

    if (n <= 2 * NR && k <= KC_COLS) {
        gemm_cols_few(m, n, k, a, lda, packed, c, ldc, mode == GEMM_ADD);
        return;
    }
    for (int k0 = 0; k0 < k; k0 += KC_COLS) {
        int kb = k - k0 < KC_COLS ? k - k0 : KC_COLS;
        for (int s0 = 0; s0 < m; s0 += STRIP * MR) {
            int rows = m - s0 < STRIP * MR ? m - s0 : STRIP * MR;
            for (int p = 0; p < kb; p++)
                for (int i = 0; i < rows; i += MR)
                    copy_floats(strip + ((ptrdiff_t)i * kb + (ptrdiff_t)p * MR),
                                a + (ptrdiff_t)(k0 + p) * lda + s0 + i, rows - i < MR ? rows - i : MR);
            for (int i = 0; i < rows; i += MR)
                for (int j = 0; j < n; j += NR)
                    tiles[rows - i < MR ? rows - i : MR](
                        true, n - j < NR ? n - j : NR, kb, strip + (ptrdiff_t)i * kb, MR,
                        packed + (ptrdiff_t)j * k + (ptrdiff_t)k0 * NR, c + (ptrdiff_t)(s0 + i) * ldc + j, ldc,
                        k0 > 0 || mode == GEMM_ADD);
        }
    }
}

/* C (m, n) = A B or C += A B; B is packed, A by rows or by columns. */
static void gemm(int m, int n, int k, const float *a, int lda, bool a_cols, const float *packed, float *c, int ldc,
                 enum gemm_mode mode)
{
    if (a_cols)
        gemm_cols(m, n, k, a, lda, packed, c, ldc, mode);
    else
        gemm_rows(m, n, k, a, lda, packed, c, ldc, mode);
}

/* Work is cut into blocks of rows and of panels so that each piece of B stays in L2 and both threads have equal work.
 * */
static void gemm_mt(int m, int n, int k, const float *a, int lda, bool a_cols, const float *packed, float *c, int ldc,
                    enum gemm_mode mode)
{
    int panels = (n + NR - 1) / NR;
    int rows = STRIP * MR; /* per block: enough reuse of a panel */
    int cols = (int)((a_cols ? 512 << 10 : 256 << 10) / (sizeof(float) * NR * (size_t)(k < KC ? k : KC)));
    int mb, nb, threads = omp_get_max_threads();

    cols = cols < 1 ? 1 : cols > panels ? panels : cols;
    mb = (m + rows - 1) / rows;
    nb = (panels + cols - 1) / cols;
    if (mb * nb < 4 * threads && panels > nb) { /* few rows: cut finer along n */
        nb = (4 * threads + mb - 1) / mb;
        nb = nb > panels ? panels : nb;
    }
#pragma omp parallel for collapse(2) schedule(dynamic) if ((double)m * n * k > 2e6)
    for (int jb = 0; jb < nb; jb++)
        for (int ib = 0; ib < mb; ib++) {
            int i0 = (int)((int64_t)m * ib / mb), i1 = (int)((int64_t)m * (ib + 1) / mb);
            int j0 = (int)((int64_t)panels * jb / nb) * NR, j1 = (int)((int64_t)panels * (jb + 1) / nb) * NR;
            j1 = j1 > n ? n : j1;
            gemm(i1 - i0, j1 - j0, k, a_cols ? a + i0 : a + (ptrdiff_t)i0 * lda, lda, a_cols,
                 packed + (ptrdiff_t)j0 * k, c + (ptrdiff_t)i0 * ldc + j0, ldc, mode);
        }
}

/* Packs NR rows of w (n, k) as columns of a panel. */
static void pack_nt_panel(const float *w, int ld, int n, int k, float *out)
{
    for (int p0 = 0; p0 < k; p0 += 16) { /* 16 x NR at a time: both sides stay in L1 */
        int p1 = p0 + 16 < k ? p0 + 16 : k;
        for (int j = 0; j < NR; j++)
            for (int p = p0; p < p1; p++)
                out[(ptrdiff_t)p * NR + j] = j < n ? w[(ptrdiff_t)j * ld + p] : 0;
    }
}

/* Packs NR columns of b (k, n) as a panel. */
static void pack_nn_panel(const float *b, int ld, int n, int k, float *out)
{
    for (int p = 0; p < k; p++, b += ld, out += NR) {
        if (n == NR) {
            v_store(out, v_load(b));
            v_store(out + VL, v_load(b + VL));
        } else {
            memset(out, 0, NR * sizeof *out);
            memcpy(out, b, (size_t)n * sizeof *out);
        }
    }
}

static void pack_nt(const float *w, int ld, int n, int k, float *out)
{
    for (int j = 0; j < n; j += NR)
        pack_nt_panel(w + (ptrdiff_t)j * ld, ld, n - j < NR ? n - j : NR, k, out + (ptrdiff_t)j * k);
}

static void pack_nn(const float *b, int ld, int n, int k, float *out)
{
    for (int j = 0; j < n; j += NR)
        pack_nn_panel(b + j, ld, n - j < NR ? n - j : NR, k, out + (ptrdiff_t)j * k);
}

static void pack_nt_mt(const float *w, int ld, int n, int k, float *out)
{
#pragma omp parallel for schedule(dynamic)
    for (int j = 0; j < n; j += NR)
        pack_nt_panel(w + (ptrdiff_t)j * ld, ld, n - j < NR ? n - j : NR, k, out + (ptrdiff_t)j * k);
}

static void pack_nn_mt(const float *b, int ld, int n, int k, float *out)
{
#pragma omp parallel for schedule(dynamic)
    for (int j = 0; j < n; j += NR)
        pack_nn_panel(b + j, ld, n - j < NR ? n - j : NR, k, out + (ptrdiff_t)j * k);
}
#endif
