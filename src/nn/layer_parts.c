/* layer_parts.c - what kinds of layer have in common on a device: storage, the projections around the mixer, SwiGLU. */
#include <string.h>

#include "nn/dev_model.h"

static size_t layer_parts_padded(size_t bytes) { return (bytes + 255) / 256 * 256; }

size_t layer_parts_bytes(const struct layer_part *p, int n)
{
    size_t sum = 0;

    for (int i = 0; i < n; i++)
        sum += layer_parts_padded(p[i].bytes);
    return sum;
}

char *layer_parts_place(const struct layer_part *p, int n, char *at)
{
    for (int i = 0; i < n; i++) {
        memcpy(p[i].where, &at, sizeof at); /* the address of a pointer of either type */
        at += layer_parts_padded(p[i].bytes);
    }
    return at;
}

void layer_project(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a)
{
    const struct dev_weights *w = &g->layer[layer];
    const struct model_dims *n = &g->dims;
    enum mix mix = g->mix[layer];

    g->d->ops->rmsnorm(g->d->q, g->dt, s->T, n->d, NULL, a->x, w->norm1, n->plus, g->eps, s->h, a->rstd1);
    if (w->bias) /* the product is added to it, with one rounding */
        g->d->ops->bias_rows(g->d->q, g->dt, s->T, n->in[mix], w->bias, a->qkv, n->ld_in[mix]);
    dev_linear(g, s->T, n->in[mix], n->d, s->h, n->d, w->qkv, w->bias ? a->qkv : NULL, a->qkv, n->ld_in[mix]);
}

void layer_finish(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a, const void *mixed,
                  void *x_out)
{
    const struct dev_weights *w = &g->layer[layer];
    const struct nn_dev_ops *op = g->d->ops;
    const struct model_dims *n = &g->dims;
    int mix = n->mix[g->mix[layer]];

    dev_linear(g, s->T, n->d, mix, mixed, mix, w->o, a->x, a->x_mid, n->d);
    op->rmsnorm(g->d->q, g->dt, s->T, n->d, NULL, a->x_mid, w->norm2, n->plus, g->eps, s->h, a->rstd2);
    dev_linear(g, s->T, 2 * n->f, n->d, s->h, n->d, w->gate_up, NULL, a->gate_up, 2 * n->f);
    op->swiglu(g->d->q, g->dt, s->T, n->f, a->gate_up, s->act);
    dev_linear(g, s->T, n->d, n->f, s->act, n->f, w->down, a->x_mid, x_out, n->d);
}

void layer_mlp_backward(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a)
{
    const struct dev_weights *w = &g->layer[layer];
    const struct nn_dev_ops *op = g->d->ops;
    const struct model_dims *n = &g->dims;

    dev_linear_dx(g, s->T, n->d, n->f, s->dx, n->d, w->down, s->dact, n->f);
    op->swiglu_backward(g->d->q, g->dt, s->T, n->f, a->gate_up, s->dact, a->gate_up, s->act);
    dev_linear_dw(g, s->T, n->d, n->f, s->dx, n->d, s->act, n->f, w->down);
    dev_linear_dx(g, s->T, 2 * n->f, n->d, a->gate_up, 2 * n->f, w->gate_up, s->dh, n->d);
    op->rmsnorm_backward(g->d->q, g->dt, s->T, n->d, NULL, a->x_mid, w->norm2, n->plus, a->rstd2, s->dh, s->dx,
                         dev_grad(g, w->norm2), s->h);
    dev_linear_dw(g, s->T, 2 * n->f, n->d, a->gate_up, 2 * n->f, s->h, n->d, w->gate_up);
}

void layer_out_backward(struct dev_model *g, int layer, const struct dev_step *s)
{
    int mix = g->dims.mix[g->mix[layer]];

    dev_linear_dx(g, s->T, g->dims.d, mix, s->dx, g->dims.d, g->layer[layer].o, s->datt, mix);
}

void layer_out_gradient(struct dev_model *g, int layer, const struct dev_step *s, const void *mixed)
{
    int mix = g->dims.mix[g->mix[layer]];

    dev_linear_dw(g, s->T, g->dims.d, mix, s->dx, g->dims.d, mixed, mix, g->layer[layer].o);
}

void layer_project_backward(struct dev_model *g, int layer, const struct dev_step *s, const struct dev_acts *a)
{
    const struct dev_weights *w = &g->layer[layer];
    const struct model_dims *n = &g->dims;
    int in = n->in[g->mix[layer]], ld = n->ld_in[g->mix[layer]];

    dev_linear_dx(g, s->T, in, n->d, s->dqkv, ld, w->qkv, s->dh, n->d);
    g->d->ops->rmsnorm_backward(g->d->q, g->dt, s->T, n->d, NULL, a->x, w->norm1, n->plus, a->rstd1, s->dh, s->dx,
                                dev_grad(g, w->norm1), s->h);
    dev_linear_dw(g, s->T, in, n->d, s->dqkv, ld, s->h, n->d, w->qkv);
}
