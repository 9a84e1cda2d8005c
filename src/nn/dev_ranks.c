/* dev_ranks.c - one model on several GPUs: every rank holds all of it, takes its part of a batch, sums
 * gradients; what may lie in parts instead: dev_parts.c. */

#include "nn/dev_model.h"

int model_comm_id(const char *spec, unsigned char *ret_id, struct err *e)
{
    const struct nn_dev_ops *ops = nn_device_ops(spec, e);
    char msg[256] = "";

    if (!ops)
        return -1;
    return ops->comm_id(ret_id, msg, sizeof msg) < 0 ? err_set(e, ERR_ENV, "%s", msg) : 0;
}

int model_join(struct model *m, const unsigned char *id, int rank, int world, struct err *e)
{
    struct dev_model *g = m->dev;
    char msg[256] = "";

    if (world < 2)
        return 0;
    if (!g)
        return err_set(e, ERR_INPUT, "%d ranks need '--device cuda'", world);
    if (!(g->sums = nn_device_alloc(g->d, MODEL_SUM_MAX * sizeof(float), "sums over ranks", e)))
        return -1;
    if (g->d->ops->comm_open(g->d->q, id, rank, world, msg, sizeof msg) < 0)
        return err_set(e, ERR_ENV, "rank %d of %d: %s", rank, world, msg);
    g->rank = rank;
    g->world = world;
    return 0;
}

int model_sum_grads(struct model *m, struct err *e)
{
    struct dev_model *g = m->dev;

    if (!g || g->world < 2)
        return 0;
    g->norm_known = false;
    if (g->divided) /* each backward pass has done so */
        return 0;
    g->d->ops->comm_sum(g->d->q, g->n, g->grads);
    return nn_device_sync(g->d, e) < 0 ? err_prefix(e, "rank %d, sum of gradients", g->rank) : 0;
}

int dev_sum(struct dev_model *g, double *x, int n, struct err *e)
{
    float tmp[MODEL_SUM_MAX];

    for (int i = 0; i < n; i++)
        tmp[i] = (float)x[i];
    g->d->ops->upload(g->d->q, g->sums, tmp, (size_t)n * sizeof *tmp);
    g->d->ops->comm_sum(g->d->q, (size_t)n, g->sums);
    g->d->ops->download(g->d->q, tmp, g->sums, (size_t)n * sizeof *tmp);
    for (int i = 0; i < n; i++)
        x[i] = tmp[i];
    return nn_device_sync(g->d, e) < 0 ? err_prefix(e, "rank %d, sum of losses", g->rank) : 0;
}

int model_sum(struct model *m, double *x, int n, struct err *e)
{
    return m->dev && m->dev->world > 1 ? dev_sum(m->dev, x, n, e) : 0;
}
