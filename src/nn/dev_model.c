/* dev_model.c - a model moves to a device: slabs, padding, the way back, the optimiser. */
#include "nn/dev_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static size_t dev_model_tensor_size(const struct model_tensor *t) { return (size_t)t->rows * (size_t)t->cols; }

/* Settles each tensor's offset in the padded slab of the device. */
static void dev_model_lay_out(struct dev_model *g, const struct model *m)
{
    g->offset = xcalloc((size_t)m->n_tensors, sizeof *g->offset);
    for (int i = 0; i < m->n_tensors; i++) {
        if (!m->tensors[i].continues) /* one matrix for the operators: no padding */
            g->n = (g->n + DEV_GRAIN - 1) / DEV_GRAIN * DEV_GRAIN;
        g->offset[i] = g->n;
        g->n += dev_model_tensor_size(&m->tensors[i]);
    }
    g->n = (g->n + DEV_GRAIN - 1) / DEV_GRAIN * DEV_GRAIN;
}

/* NULL for NULL. */
static void *dev_model_weight(const struct dev_model *g, const struct model *m, const float *host)
{
    return host ? dev_tensor_at(g, g->w, dev_place_of(g, m, host)) : NULL;
}

/* The float32 copy of a tensor of m; NULL without host. */
/* Weights that operators read from the master: of a delta layer alone. */
static void dev_model_point_rates(struct dev_model *g, const struct model *m, int i)
{
    const struct model_layer *l = &m->layers[i];
    struct dev_weights *w = &g->layer[i];

    if (!l->a_log)
        return;
    w->a_log_at = dev_place_of(g, m, l->a_log);
    w->dt_bias_at = dev_place_of(g, m, l->dt_bias);
    w->a_log = g->master + w->a_log_at;
    w->dt_bias = g->master + w->dt_bias_at;
}

/* Makes g's pointers to all weights on the device. */
static void dev_model_point(struct dev_model *g, const struct model *m)
{
    g->layer = xcalloc((size_t)m->config.num_layers, sizeof *g->layer);
    g->mix = xcalloc((size_t)m->config.num_layers, sizeof *g->mix);
    for (int i = 0; i < m->config.num_layers; i++) {
        const struct model_layer *l = &m->layers[i];
        g->mix[i] = l->mix;
        g->layer[i] = (struct dev_weights){
            .norm1 = dev_model_weight(g, m, l->norm1), .qkv = dev_model_weight(g, m, l->qkv),
                .bias = dev_model_weight(g, m, l->bias),
            .q_norm = dev_model_weight(g, m, l->q_norm), .k_norm = dev_model_weight(g, m, l->k_norm),
            .conv = dev_model_weight(g, m, l->conv), .mix_norm = dev_model_weight(g, m, l->mix_norm),
            .o = dev_model_weight(g, m, l->o),
            .norm2 = dev_model_weight(g, m, l->norm2), .gate_up = dev_model_weight(g, m, l->gate_up),
                .down = dev_model_weight(g, m, l->down)};
        dev_model_point_rates(g, m, i);
    }
    g->embed = dev_model_weight(g, m, m->embed);
    g->final_norm = dev_model_weight(g, m, m->final_norm);
    g->head = dev_model_weight(g, m, m->lm_head);
}

/* ---- between the host's slab and a padded one ---- */

/* Tensor by tensor: what lies between them is zero since the slab was allocated, and no operator changes it. */
int dev_push(const struct dev_model *g, const struct model *m, const float *host, float *slab, struct err *e)
{
    for (int i = 0; i < m->n_tensors; i++)
        g->d->ops->upload(g->d->q, slab + g->offset[i], host + m->tensors[i].offset,
                          dev_model_tensor_size(&m->tensors[i]) * sizeof *host);
    return nn_device_sync(g->d, e);
}

/* Copies a slab of the device to the host's order of weights. */
int dev_fetch(const struct dev_model *g, const struct model *m, const float *slab, float *host, struct err *e)
{
    for (int i = 0; i < m->n_tensors; i++)
        g->d->ops->download(g->d->q, host + m->tensors[i].offset, slab + g->offset[i],
                            dev_model_tensor_size(&m->tensors[i]) * sizeof *host);
    return nn_device_sync(g->d, e);
}

int model_fetch(const struct model *m, struct err *e)
{
    struct dev_model *g = m->dev;

    if (!g || !g->newer)
        return 0;
    g->newer = false;
    return (g->divided ? dev_fetch_parts : dev_fetch)(g, m, g->master, m->weights, e);
}

int model_fetch_grads(struct model *m, struct err *e)
{
    struct dev_model *g = m->dev;

    if (!g)
        return 0;
    if (!g->grads || g->divided)
        return err_set(e, ERR_BUG, "the gradients are not on this device, or in parts");
    if (!m->grads && !(m->grads = slab_alloc(m->n_params, e, "gradients")))
        return -1;
    if (dev_fetch(g, m, g->grads, m->grads, e) < 0)
        return -1;
    if (g->pending != 1)
        m->ops->scale(m->n_params, m->grads, g->pending);
    return 0;
}

int dev_copy_weights(struct dev_model *to, const struct dev_model *from, struct err *e)
{
    const struct nn_dev_ops *op = to->d->ops;

    if (nn_device_sync(from->d, e) < 0)
        return -1;
    op->copy(to->d->q, to->master, from->master, to->n * sizeof *to->master);
    if (to->w != to->master)
        op->copy(to->d->q, to->w, from->w, to->n * dtype_size(to->dt));
    to->newer = true;
    return nn_device_sync(to->d, e);
}

/* ---- life ---- */

/* Uploads which weights decay. */
static int dev_model_make_decays(struct dev_model *g, const struct model *m, struct err *e)
{
    uint8_t *flags = xcalloc(g->n / DEV_GRAIN, 1);

    for (int i = 0; i < m->n_tensors; i++)
        for (size_t k = g->offset[i] / DEV_GRAIN; !m->tensors[i].is_vector &&
             k * DEV_GRAIN < g->offset[i] + dev_model_tensor_size(&m->tensors[i]); k++)
            flags[k] = 1;
    if ((g->decays = nn_device_alloc(g->d, g->n / DEV_GRAIN, "the optimiser's flags", e)))
        g->d->ops->upload(g->d->q, g->decays, flags, g->n / DEV_GRAIN);
    free(flags);
    return g->decays ? 0 : -1;
}

/* Master weights in fp32 and, for another type, a copy of it; decays and a place for a norm. Uploads m's weights. */
static int dev_model_allocate(struct dev_model *g, const struct model *m, struct err *e)
{
    if (!(g->master = nn_device_alloc(g->d, g->n * sizeof(float), "weights", e)) ||
        !(g->norm_sq = nn_device_alloc(g->d, sizeof(double), "a norm", e)) || dev_model_make_decays(g, m, e) < 0 ||
        dev_push(g, m, m->weights, g->master, e) < 0)
        return -1;
    g->w = g->master;
    if (g->dt == NN_F32)
        return 0;
    if (!(g->w = nn_device_alloc(g->d, g->n * dtype_size(g->dt), "weights", e)))
        return -1;
    g->d->ops->from_f32(g->d->q, g->dt, g->n, g->master, g->w);
    return nn_device_sync(g->d, e);
}

/* ERR_INPUT for sizes that the device's kernels cannot take. */
static int dev_model_check_sizes(const struct model *m, struct err *e)
{
    struct model_dims n = model_dims(m);

    if (n.d % 8 || n.f % 8 || n.dim % 8)
        return err_set(e, ERR_INPUT, "on a device hidden_size (%d), intermediate_size (%d) and head_dim (%d) must be "
                                     "multiples of 8", n.d, n.f, n.dim);
    if (n.dim != 16 && n.dim != 32 && n.dim != 64 && n.dim != 128 && n.dim != 256)
        return err_set(e, ERR_INPUT, "on a device head_dim must be 16, 32, 64, 128 or 256, not %d", n.dim);
    if (m->config.n_linear && (n.delta.k_dim % 8 || n.delta.v_dim % 8 || n.delta.k_dim > 128))
        return err_set(e, ERR_INPUT, "on a device linear_key_head_dim (%d) and linear_value_head_dim (%d) must be "
                                     "multiples of 8, and the first 128 at most", n.delta.k_dim, n.delta.v_dim);
    return n.d > 5120 ? err_set(e, ERR_INPUT, "on a device hidden_size ends at 5120, not %d", n.d) : 0;
}

int model_to_device(struct model *m, const char *spec, const char *dtype, struct err *e)
{
    struct dev_model *g;
    enum nn_dtype dt = NN_BF16;

    if (!strcmp(spec, "cpu"))
        return 0;
    if (dtype && !strcmp(dtype, "fp32"))
        dt = NN_F32;
    else if (dtype && strcmp(dtype, "bf16"))
        return err_set(e, ERR_INPUT, "type '%s' is neither bf16 nor fp32", dtype);
    if (dev_model_check_sizes(m, e) < 0)
        return -1;
    g = xcalloc(1, sizeof *g);
    *g = (struct dev_model){.dt = dt, .dims = model_dims(m), .eps = (float)m->config.rms_norm_eps, .pending = 1};
    g->world = g->parts = 1;
    g->n_layers = m->config.num_layers;
    dev_model_lay_out(g, m);
    if (!(g->d = nn_device_open(spec, e)) || dev_model_allocate(g, m, e) < 0) {
        dev_model_free(g);
        return -1;
    }
    dev_model_point(g, m);
    m->dev = g;
    return 0;
}

void dev_model_free(struct dev_model *g)
{
    if (!g)
        return;
    if (g->d) {
        void *owned[] = {g->master, g->w == g->master ? NULL : g->w, g->grads, g->m, g->v, g->decays,
                                 g->norm_sq, g->sums, g->window, g->rates};
        dev_train_free(g);
        for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
            nn_device_free(g->d, owned[i]);
        nn_device_close(g->d);
    }
    free(g->offset);
    free(g->bucket);
    free(g->layer);
    free(g->mix);
    free(g);
}

/* ---- optimiser ---- */

/* Sets the gradients to zero and begins a new sum of one micro-batch. */
void dev_zero_grads(struct dev_model *g)
{
    g->pending = 1;
    g->norm_known = false;
    if (g->grads)
        g->d->ops->zero(g->d->q, g->grads, dev_grads_size(g) * sizeof *g->grads);
}

/* Makes AdamW's moments on the device, all 0. */
int dev_optim_new(struct dev_model *g, struct err *e)
{
    size_t bytes = (dev_part_size(g) + DEV_GRAIN) * sizeof(float); /* a rank may have none of it */

    if (!g->m && !(g->m = nn_device_alloc(g->d, bytes, "the first moment", e)))
        return -1;
    if (!g->v && !(g->v = nn_device_alloc(g->d, bytes, "the second moment", e)))
        return -1;
    g->d->ops->zero(g->d->q, g->m, bytes);
    g->d->ops->zero(g->d->q, g->v, bytes);
    return 0;
}

/* The gradients' norm with what is pending; the device is asked once a step. */
double dev_grad_norm(const struct model *m)
{
    struct dev_model *g = m->dev;
    double sum = 0;

    if (!g->norm_known) {
        if (dev_grads_size(g)) {
            g->d->ops->sumsq(g->d->q, dev_grads_size(g), g->grads, g->norm_sq);
            g->d->ops->download(g->d->q, &sum, g->norm_sq, sizeof sum);
        }
        if (g->divided)
            dev_sum(g, &sum, 1, NULL);
        g->norm = sqrt(sum);
        g->norm_known = true;
    }
    return g->norm * g->pending;
}

/* ERR_INPUT with the first tensor whose gradient is not finite. Always -1. */
static int dev_model_name_bad_gradient(struct model *m, struct err *e)
{
    if (!m->dev->divided && model_fetch_grads(m, e) < 0)
        return -1;
    for (int i = 0; i < m->n_tensors && !m->dev->divided; i++)
        if (!isfinite(m->ops->sumsq(dev_model_tensor_size(&m->tensors[i]), m->grads + m->tensors[i].offset)))
            return err_set(e, ERR_INPUT, "the gradient of '%s' is not finite; lower the learning rate",
                           m->tensors[i].name);
    return err_set(e, ERR_INPUT, "the gradient's norm is not finite; lower the learning rate");
}

/* One step of AdamW on the device over this rank's part. ERR_INPUT: a gradient is not finite. */
int dev_optim_step(struct optim *o, struct model *m, double lr, struct err *e)
{
    struct dev_model *g = m->dev;
    const struct adamw_options *a = &o->opts;
    struct nn_adamw x;
    size_t from, to;

    if (!g->m || !g->grads)
        return err_set(e, ERR_BUG, "the optimiser belongs to another model, or there are no gradients");
    if (!isfinite(dev_grad_norm(m)))
        return dev_model_name_bad_gradient(m, e);
    o->step++;
    dev_part(g, g->rank, &from, &to);
    x = (struct nn_adamw){.n = to - from, .w = g->master + (g->divided ? 0 : from),
                          .w16 = g->dt == NN_F32 ? NULL : dev_tensor_at(g, g->w, from),
                          .g = g->grads + (g->divided ? 0 : from), .m = g->m, .v = g->v,
                          .decays = g->decays + from / DEV_GRAIN, .scale = g->pending, .lr = (float)lr,
                          .beta1 = (float)a->beta1,
                          .beta2 = (float)a->beta2, .eps = (float)a->eps, .decay = (float)a->weight_decay,
                          .correct1 = (float)(1 - pow(a->beta1, (double)o->step)),
                          .correct2 = (float)(1 - pow(a->beta2, (double)o->step))};
    if (x.n)
        g->d->ops->adamw(g->d->q, g->dt, &x);
    if (g->parts > 1)
        dev_share_weights(g);
    g->newer = true;
    m->version++;
    return g->parts > 1 ? nn_device_sync(g->d, e) : 0; /* alone: the next step's tables are made meanwhile */
}
