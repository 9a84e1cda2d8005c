/* dev_linear.c - products with a model's weights on a device. */
#include "nn/dev_model.h"

void dev_linear(struct dev_model *g, int m, int n, int k, const void *x, int ldx, const void *w, const void *add,
                void *y,
                int ldy)
{
    struct nn_product p = {NN_GEMM_NT, m, n, k, x, w, add, y, ldx, k, ldy, ldy, add ? 1 : 0, false};

    g->d->ops->gemm(g->d->q, g->dt, &p);
}

void dev_linear_dx(struct dev_model *g, int m, int n, int k, const void *dy, int ld_dy, const void *w, void *dx,
                   int ld_dx)
{
    struct nn_product p = {NN_GEMM_NN, m, k, n, dy, w, NULL, dx, ld_dy, k, ld_dx, ld_dx, 0, false};

    g->d->ops->gemm(g->d->q, g->dt, &p);
}

void dev_linear_dw(struct dev_model *g, int m, int n, int k, const void *dy, int ld_dy, const void *x, int ldx,
                   const void *w)
{
    struct nn_product p = {NN_GEMM_TN, n, k, m, dy, x, NULL, dev_grad(g, w), ld_dy, ldx, k, k, 1, true};

    g->d->ops->gemm(g->d->q, g->dt, &p);
}
