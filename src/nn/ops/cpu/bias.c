/* bias.c - one vector added to every row of a product: rows begin as it, and the product is added to them; backward
 * sums the rows of a gradient. Compiled by isa_*.c, after rmsnorm.c. */
#ifdef ISA_NAME
#include "base/mem.h"
#include "nn/ops/ops.h"

/* Fills T rows of y with b (n). */
static void bias_rows_mt(int T, int n, const float *b, float *y, int ld)
{
#pragma omp parallel for schedule(static) if ((double)T * n > 1e5)
    for (int t = 0; t < T; t++)
        memcpy(y + (ptrdiff_t)t * ld, b, (size_t)n * sizeof *y);
}

/* db (n) += sum over T rows of dy (T, ld), in an order that does not depend on threads. */
static void bias_backward_mt(int T, int n, const float *dy, int ld, float *db)
{
    float *sum = xcalloc((size_t)NORM_CHUNKS * (size_t)n, sizeof *sum);

#pragma omp parallel for schedule(dynamic)
    for (int c = 0; c < NORM_CHUNKS; c++) {
        int t0 = (int)((int64_t)T * c / NORM_CHUNKS), t1 = (int)((int64_t)T * (c + 1) / NORM_CHUNKS);
        for (int t = t0; t < t1; t++)
            for (int i = 0; i < n; i++)
                sum[(ptrdiff_t)c * n + i] += dy[(ptrdiff_t)t * ld + i];
    }
    for (int c = 0; c < NORM_CHUNKS; c++)
        for (int i = 0; i < n; i++)
            db[i] += sum[(ptrdiff_t)c * n + i];
    free(sum);
}
#endif
