/* optim.c - AdamW over the slabs, clipping, schedules, exact state. */
#include "nn/optim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "nn/dev_model.h"
#include "nn/model_private.h"
#include "nn/safetensors.h"

/* AdamW's moments for all of m, on its device; 0 in o means the usual value. Freed by optim_free. */
struct optim *optim_new(const struct model *m, const struct adamw_options *o)
{
    struct optim *a = xcalloc(1, sizeof *a);

    a->opts = *o;
    a->opts.beta1 = o->beta1 ? o->beta1 : 0.9;
    a->opts.beta2 = o->beta2 ? o->beta2 : 0.999;
    a->opts.eps = o->eps ? o->eps : 1e-8;
    a->n = m->n_params;
    if ((a->dev = m->dev)) {
        struct err e = ERR_INIT;
        if (dev_optim_new(m->dev, &e) < 0)
            abort(); /* planned by model_train_begin */
        a->on = m;
        return a;
    }
    a->m = slab_alloc(a->n, NULL, "first moment");
    a->v = slab_alloc(a->n, NULL, "second moment");
    if (!a->m || !a->v)
        abort(); /* as xmalloc: optimiser state is twice the weights, which are already there */
    return a;
}

void optim_free(struct optim *o)
{
    if (!o)
        return;
    slab_free(o->m);
    slab_free(o->v);
    free(o);
}

static size_t optim_tensor_size(const struct model_tensor *t) { return (size_t)t->rows * (size_t)t->cols; }

int optim_step(struct optim *o, struct model *m, double lr, struct err *e)
{
    double c1, c2;

    if (m->dev)
        return dev_optim_step(o, m, lr, e);
    if (o->n != m->n_params || !m->grads)
        return err_set(e, ERR_BUG, "the optimiser belongs to another model, or there are no gradients");
    for (int i = 0; i < m->n_tensors; i++)
        if (!isfinite(m->ops->sumsq(optim_tensor_size(&m->tensors[i]), m->grads + m->tensors[i].offset)))
            return err_set(e, ERR_INPUT, "the gradient of '%s' is not finite; lower the learning rate",
                           m->tensors[i].name);
    o->step++;
    c1 = 1 - pow(o->opts.beta1, (double)o->step);
    c2 = 1 - pow(o->opts.beta2, (double)o->step);
    for (int i = 0; i < m->n_tensors; i++) {
        const struct model_tensor *t = &m->tensors[i];
        size_t at = t->offset;
        m->ops->adamw_mt(optim_tensor_size(t), m->weights + at, m->grads + at, o->m + at, o->v + at, (float)lr,
                         (float)o->opts.beta1, (float)o->opts.beta2, (float)o->opts.eps,
                         t->is_vector ? 0 : (float)o->opts.weight_decay, (float)c1, (float)c2);
    }
    m->version++;
    return 0;
}

double grad_norm(const struct model *m)
{
    double sum = 0;

    if (m->dev)
        return dev_grad_norm(m);
    for (int i = 0; i < m->n_tensors; i++)
        sum += m->ops->sumsq(optim_tensor_size(&m->tensors[i]), m->grads + m->tensors[i].offset);
    return sqrt(sum);
}

void grad_scale(struct model *m, double factor)
{
    if (m->dev)
        m->dev->pending *= (float)factor; /* AdamW multiplies */
    else
        m->ops->scale(m->n_params, m->grads, (float)factor);
}

double grad_clip(struct model *m, double max_norm)
{
    double norm = grad_norm(m);

    if (max_norm > 0 && norm > max_norm)
        grad_scale(m, max_norm / (norm + 1e-6)); /* as torch.nn.utils.clip_grad_norm_ */
    return norm;
}

/* Both moments as the host has them: the optimiser's own, or fetched into *ret_owned (2 n), which the caller frees. */
static int optim_host_moments(const struct optim *o, float **ret_m, float **ret_v, float **ret_owned, struct err *e)
{
    *ret_m = o->m;
    *ret_v = o->v;
    *ret_owned = NULL;
    if (!o->dev)
        return 0;
    if (!(*ret_owned = slab_alloc(2 * o->n, e, "the optimiser's state")))
        return -1;
    *ret_m = *ret_owned;
    *ret_v = *ret_owned + o->n;
    int (*fetch)(const struct dev_model *, const struct model *, const float *, float *, struct err *) =
        o->dev->parts > 1 ? dev_fetch_parts : dev_fetch;
    return fetch(o->dev, o->on, o->dev->m, *ret_m, e) < 0 ? -1 : fetch(o->dev, o->on, o->dev->v, *ret_v, e);
}

/* Writes the step and both moments as a safetensors file. */
static int optim_save_moments(const struct optim *o, const float *m, const float *v, const char *path, struct err *e)
{
    struct st_writer *w = st_create(path, e);
    int64_t n = (int64_t)o->n, one = 1;

    if (!w)
        return -1;
    st_set_metadata(w, "format", "musacoder.adamw/1");
    if (st_declare(w, "step", ST_I64, 1, &one, e) < 0 || st_declare(w, "exp_avg", ST_F32, 1, &n, e) < 0 ||
        st_declare(w, "exp_avg_sq", ST_F32, 1, &n, e) < 0 || st_write(w, &o->step, sizeof o->step, e) < 0 ||
        st_write(w, m, o->n * sizeof *m, e) < 0 || st_write(w, v, o->n * sizeof *v, e) < 0) {
        st_abort(w);
        return -1;
    }
    return st_commit(w, e);
}

int optim_give(const struct optim *o, struct err *e)
{
    if (!o->dev || o->dev->parts < 2)
        return 0;
    return dev_fetch_parts(o->dev, o->on, o->dev->m, NULL, e) < 0 ? -1
                                                                  : dev_fetch_parts(o->dev, o->on, o->dev->v, NULL, e);
}

int optim_save(const struct optim *o, const char *path, struct err *e)
{
    float *m, *v, *owned;
    int rc = optim_host_moments(o, &m, &v, &owned, e);

    if (rc == 0)
        rc = optim_save_moments(o, m, v, path, e);
    slab_free(owned);
    return rc;
}

/* *ret is the named tensor of a saved optimiser. ERR_INPUT: missing, or of another size. */
static int optim_state_tensor(const struct safetensors *s, const char *name, enum st_dtype dtype, size_t n,
                              const char *path, const struct st_tensor **ret, struct err *e)
{
    *ret = st_find(s, name);
    if (!*ret || (*ret)->dtype != dtype || (*ret)->n != n)
        return err_set(e, ERR_INPUT, "'%s': optimiser state '%s' is missing or belongs to another model", path, name);
    return 0;
}

/* Copies saved moments to where they live. */
static int optim_set_moments(struct optim *o, const struct st_tensor *m, const struct st_tensor *v, struct err *e)
{
    if (o->dev) {
        int (*push)(const struct dev_model *, const struct model *, const float *, float *, struct err *) =
            o->dev->parts > 1 ? dev_push_part : dev_push;
        return push(o->dev, o->on, (const float *)m->data, o->dev->m, e) < 0
                   ? -1 : push(o->dev, o->on, (const float *)v->data, o->dev->v, e);
    }
    memcpy(o->m, m->data, m->nbytes);
    memcpy(o->v, v->data, v->nbytes);
    return 0;
}

int optim_load(struct optim *o, const char *path, struct err *e)
{
    struct safetensors *s = st_open(path, e);
    const struct st_tensor *step, *m, *v;
    int rc = -1;

    if (!s)
        return -1;
    if (optim_state_tensor(s, "step", ST_I64, 1, path, &step, e) == 0 &&
        optim_state_tensor(s, "exp_avg", ST_F32, o->n, path, &m, e) == 0 &&
        optim_state_tensor(s, "exp_avg_sq", ST_F32, o->n, path, &v, e) == 0) {
        memcpy(&o->step, step->data, sizeof o->step);
        rc = optim_set_moments(o, m, v, e);
    }
    st_close(s);
    return rc;
}
