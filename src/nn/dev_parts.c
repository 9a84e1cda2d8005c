/* dev_parts.c - training state in parts over ranks. ZeRO-1 and 2 of arXiv 1910.02054: AdamW's moments lie in parts,
 * one on each rank; divided, master weights and gradients do so too. Gradients are then made bucket by bucket in one
 * window: embedding, each layer, last norm with head. A bucket's sum goes to the parts before the next one begins. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "nn/dev_model.h"

#define SHARE ((size_t)4 << 20) /* elements of a moment that travel at a time */

/* Where the tensor that begins at 'host' on the host lies in a slab of the device. */
size_t dev_place_of(const struct dev_model *g, const struct model *m, const float *host)
{
    int i = 0;

    while (m->weights + m->tensors[i].offset != host)
        i++;
    return g->offset[i];
}

void dev_spread(const struct dev_model *g, const struct model *m, const float *host, float *padded)
{
    memset(padded, 0, g->n * sizeof *padded);
    for (int i = 0; i < m->n_tensors; i++)
        memcpy(padded + g->offset[i], host + m->tensors[i].offset,
               (size_t)m->tensors[i].rows * (size_t)m->tensors[i].cols * sizeof *host);
}

void dev_part(const struct dev_model *g, int r, size_t *from, size_t *to)
{
    size_t grains = g->n / DEV_GRAIN, parts = g->parts > 1 ? (size_t)g->parts : 1, each = (grains + parts - 1) / parts;
    size_t at = parts > 1 ? (size_t)r : 0;

    *from = at * each < grains ? at * each * DEV_GRAIN : g->n;
    *to = (at + 1) * each < grains ? (at + 1) * each * DEV_GRAIN : g->n;
}

size_t dev_part_size(const struct dev_model *g)
{
    size_t from, to;

    dev_part(g, g->rank, &from, &to);
    return to - from;
}

size_t dev_grads_size(const struct dev_model *g) { return g->divided ? dev_part_size(g) : g->n; }

int dev_push_part(const struct dev_model *g, const struct model *m, const float *host, float *part, struct err *e)
{
    float *padded = xmalloc(g->n * sizeof *padded);
    size_t from, to;

    dev_spread(g, m, host, padded);
    dev_part(g, g->rank, &from, &to);
    g->d->ops->upload(g->d->q, part, padded + from, (to - from) * sizeof *padded);
    free(padded);
    return nn_device_sync(g->d, e);
}

int dev_fetch_parts(const struct dev_model *g, const struct model *m, const float *part, float *host, struct err *e)
{
    const struct nn_dev_ops *op = g->d->ops;
    size_t from, to;
    float *padded = host ? xmalloc(g->n * sizeof *padded) : NULL, *at;

    at = nn_device_alloc(g->d, SHARE * sizeof *at, "a part of a moment", e);
    for (int r = 0; r < g->parts && at; r++) {
        dev_part(g, r, &from, &to);
        for (size_t i = from; i < to; i += SHARE) {
            size_t n = to - i < SHARE ? to - i : SHARE;
            if (r == g->rank)
                op->copy(g->d->q, at, part + (i - from), n * sizeof *at);
            op->comm_share(g->d->q, n, at, r);
            if (host)
                op->download(g->d->q, padded + i, at, n * sizeof *at);
        }
    }
    for (int i = 0; i < m->n_tensors && host && at; i++)
        memcpy(host + m->tensors[i].offset, padded + g->offset[i],
               (size_t)m->tensors[i].rows * (size_t)m->tensors[i].cols * sizeof *host);
    free(padded);
    int rc = at ? nn_device_sync(g->d, e) : -1;
    nn_device_free(g->d, at);
    return rc;
}

/* ---- buckets of gradients ---- */

static size_t dev_parts_least(size_t a, size_t b) { return a < b ? a : b; }
static size_t dev_parts_most(size_t a, size_t b) { return a > b ? a : b; }

size_t dev_window_size(const struct dev_model *g)
{
    size_t most = 0;

    for (int k = 0; g->divided && g->bucket[k] < g->n; k++)
        most = dev_parts_most(most, g->bucket[k + 1] - g->bucket[k]);
    return most;
}

/* Copies what the open bucket and this rank's part have in common, from the part or back. */
static void dev_parts_copy_own(struct dev_model *g, bool back)
{
    size_t from, to, first, last;

    dev_part(g, g->rank, &from, &to);
    first = dev_parts_most(from, g->bucket[g->open]);
    last = dev_parts_least(to, g->bucket[g->open + 1]);
    if (first >= last)
        return;
    float *in_part = g->grads + (first - from), *in_window = dev_grad_at(g, first);
    g->d->ops->copy(g->d->q, back ? in_part : in_window, back ? in_window : in_part,
                    (last - first) * sizeof *in_part);
}

void dev_bucket_open(struct dev_model *g, int k)
{
    if (!g->divided)
        return;
    g->open = k;
    g->d->ops->zero(g->d->q, g->window, (g->bucket[k + 1] - g->bucket[k]) * sizeof *g->window);
    dev_parts_copy_own(g, false); /* so that the sum over ranks has what was added before, once */
}

void dev_bucket_close(struct dev_model *g)
{
    if (!g->divided)
        return;
    g->d->ops->comm_sum(g->d->q, g->bucket[g->open + 1] - g->bucket[g->open], g->window);
    dev_parts_copy_own(g, true);
}

int model_backward_nothing(struct model *m, struct err *e)
{
    struct dev_model *g = m->dev;

    if (!g || !g->divided)
        return 0;
    g->norm_known = false;
    if (g->head == g->embed) { /* a tied head comes first, in the embedding's bucket */
        dev_bucket_open(g, 0);
        dev_bucket_close(g);
    }
    for (int k = g->n_layers + 1; k >= 0; k--) {
        dev_bucket_open(g, k);
        dev_bucket_close(g);
    }
    return nn_device_sync(g->d, e);
}

/* ---- weights ---- */

/* Elements of g->rates; layers without delta rules have none. */
static size_t dev_parts_rates(const struct model *m)
{
    return 2 * (size_t)m->config.n_linear * (size_t)m->config.linear_value_heads;
}

/* Copies n elements of the master from 'at' on, as far as they are this rank's. */
static void dev_parts_copy_master(struct dev_model *g, size_t at, size_t n, float *out)
{
    size_t from, to, first, last;

    dev_part(g, g->rank, &from, &to);
    first = dev_parts_most(from, at);
    last = dev_parts_least(to, at + n);
    if (first < last)
        g->d->ops->copy(g->d->q, out + (first - at), g->master + (first - from), (last - first) * sizeof *out);
}

/* All ranks get the fp32 weights that operators read. */
static void dev_parts_share_rates(struct dev_model *g)
{
    const struct dev_weights *w = g->layer;
    size_t heads = (size_t)g->dims.delta.v_heads, n = 0;

    if (!g->rates)
        return;
    for (int i = 0; i < g->n_layers; i++)
        n += w[i].a_log ? 2 * heads : 0;
    g->d->ops->zero(g->d->q, g->rates, n * sizeof *g->rates);
    for (int i = 0; i < g->n_layers; i++)
        if (w[i].a_log) {
            dev_parts_copy_master(g, w[i].a_log_at, heads, w[i].a_log);
            dev_parts_copy_master(g, w[i].dt_bias_at, heads, w[i].dt_bias);
        }
    g->d->ops->comm_sum(g->d->q, n, g->rates); /* one rank's number and zeros */
}

/* Divided: the operators' weights travel, as bytes, and the master stays. */
static void dev_parts_share_operands(struct dev_model *g)
{
    size_t from, to;

    dev_part(g, g->rank, &from, &to);
    if (g->dt == NN_F32)
        g->d->ops->copy(g->d->q, dev_tensor_at(g, g->w, from), g->master, (to - from) * sizeof *g->master);
    for (int r = 0; r < g->parts; r++) {
        dev_part(g, r, &from, &to);
        if (from < to)
            g->d->ops->comm_share(g->d->q, (to - from) * dtype_size(g->dt) / sizeof(float),
                                  dev_tensor_at(g, g->w, from), r);
    }
    dev_parts_share_rates(g);
}

void dev_share_weights(struct dev_model *g)
{
    size_t from, to;

    if (g->divided) {
        dev_parts_share_operands(g);
        return;
    }
    for (int r = 0; r < g->parts; r++) {
        dev_part(g, r, &from, &to);
        if (from < to)
            g->d->ops->comm_share(g->d->q, to - from, g->master + from, r);
    }
    if (g->w != g->master)
        g->d->ops->from_f32(g->d->q, g->dt, g->n, g->master, g->w);
}

/* Where buckets begin: at the first tensor of each. */
static void dev_parts_make_buckets(struct dev_model *g, const struct model *m)
{
    int L = m->config.num_layers;

    g->bucket = xcalloc((size_t)L + 3, sizeof *g->bucket);
    for (int i = 0; i < L; i++)
        g->bucket[1 + i] = dev_place_of(g, m, m->layers[i].norm1);
    g->bucket[L + 1] = dev_place_of(g, m, m->final_norm);
    g->bucket[L + 2] = g->n;
}

/* The rates lie apart, since the master is no longer whole. */
static int dev_parts_move_rates(struct dev_model *g, const struct model *m, struct err *e)
{
    float *at;

    if (!dev_parts_rates(m))
        return 0;
    if (!(at = g->rates = nn_device_alloc(g->d, dev_parts_rates(m) * sizeof *at, "rates of delta layers", e)))
        return -1;
    for (int i = 0; i < m->config.num_layers; i++)
        if (g->layer[i].a_log) {
            g->layer[i].a_log = at;
            g->layer[i].dt_bias = at + g->dims.delta.v_heads;
            at += 2 * g->dims.delta.v_heads;
        }
    return 0;
}

/* The master becomes this rank's part of it. In fp32 the whole one stays as what the operators read. */
static int dev_parts_divide(struct dev_model *g, const struct model *m, struct err *e)
{
    size_t from, to;
    float *whole = g->master;

    if (dev_parts_move_rates(g, m, e) < 0)
        return -1;
    g->master = nn_device_alloc(g->d, (dev_part_size(g) + DEV_GRAIN) * sizeof *whole, "a part of the weights", e);
    if (!g->master) {
        g->master = whole;
        return -1;
    }
    dev_part(g, g->rank, &from, &to);
    g->d->ops->copy(g->d->q, g->master, whole + from, (to - from) * sizeof *whole);
    if (g->w != whole)
        nn_device_free(g->d, whole);
    dev_parts_make_buckets(g, m);
    g->divided = true;
    dev_parts_share_rates(g);
    return nn_device_sync(g->d, e);
}

int model_part_state(struct model *m, int zero, struct err *e)
{
    struct dev_model *g = m->dev;

    if (!g || g->world < 2 || zero < 1)
        return 0;
    g->parts = g->world;
    return zero > 1 ? dev_parts_divide(g, m, e) : 0;
}

int model_give(const struct model *m, struct err *e)
{
    struct dev_model *g = m->dev;

    if (!g || !g->divided || !g->newer)
        return 0;
    g->newer = false;
    return dev_fetch_parts(g, m, g->master, NULL, e);
}

bool model_sums_by_batch(const struct model *m) { return m->dev && m->dev->divided; }
