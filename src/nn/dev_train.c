/* dev_train.c - life of one training step on a device: the step's tables go up, then embed, layers, classifier, and
 * the same way back. What is kept and what is recomputed is as on the host (model_train.c). Where the layers'
 * activations do not fit, a layer keeps its input alone and runs forward again before it runs backward (Chen et al.,
 * arXiv 1604.06174): the same bits, a third more work. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "nn/dev_model.h"
#include "nn/buffer_plan.h"

#define LOGITS_BYTES ((size_t)6 << 30) /* logits kept between forward and backward; beyond, they are recomputed */
#define CHUNK_BYTES ((size_t)512 << 20) /* of logits at a time when they are not kept */

enum phase { LAYERS, CLASSIFY, CLASSIFY_BACK, LAYERS_BACK };

struct dev_train {
    struct train_limits limits;
    int chunk, ld_logits;
    bool again;              /* layers run again on the way back: they keep their inputs and share the rest */
    char *slab;
    char *layers;            /* activations, one layer behind the other; again: inputs, then one layer's */
    struct dev_acts *acts;   /* one per layer */
    struct dev_step step;
    void *x_last;            /* (T, d) behind the last layer */
    void *h_last, *dh_last;  /* (N, d) its rows with targets, normed; gradient */
    void *logits;            /* (chunk, ld_logits) */
    float *rstd, *lse, *logp, *entropy, *dlogp, *dentropy; /* (N) */
    int32_t *ints;           /* the step's tables, in one piece */
    int32_t *host_ints;
    float *host_floats;      /* (2 N) */
    int32_t *pad_tokens, *pad_targets, *pad_cu; /* (T) (T) (T + 2) the batch with rows added, see round_rows */
    float *rope;
    int rope_positions;
    /* state between forward and backward */
    bool ready;
    int32_t *from;           /* (N) position of each target in the batch, on the host */
    int n_targets, n_ids;
    int32_t *kept_to, *kept; /* on the device: (N + 1), and the ids; NULL where every softmax runs over all ids */
    float *kept_hold;
    int32_t *host_kept_to;   /* (N + 1) */
    float inv_temp;
    const int32_t *tokens, *at, *target, *ids, *start, *order; /* into ints */
};

static size_t dev_train_max_targets(const struct train_limits *l)
{
    return (size_t)(l->max_targets ? l->max_targets : l->max_tokens);
}

/* tokens pos seq order (T), cu (T + 1), tiles (2 (T / tile + T)), at target (N), ids (T) start (T + 1) */
static size_t dev_train_ints_of(const struct train_limits *l) { return 10 * (size_t)l->max_tokens + 2 *
                                                                dev_train_max_targets(l) + 64; }

/* Bytes of a layer's input, where it lies apart. */
static size_t dev_train_input_bytes(const struct dev_model *g, const struct train_limits *l)
{
    return ((size_t)l->max_tokens * (size_t)g->dims.d * dtype_size(g->dt) + 255) / 256 * 256;
}

/* Bytes of all layers' activations. again: of one layer, the largest, and of each one's input. */
static size_t dev_train_layers_bytes(const struct model *m, const struct train_limits *l, bool again)
{
    size_t sum = 0, most = 0;

    for (int i = 0; i < m->config.num_layers; i++) {
        size_t one = layer_kind_of(m, i)->acts_bytes(&m->dev->dims, m->dev->dt, l->max_tokens);
        sum += one;
        most = one > most ? one : most;
    }
    return again ? (size_t)m->config.num_layers * dev_train_input_bytes(m->dev, l) + most : sum;
}

/* Points each layer's activations into its place. */
static void dev_train_place_layers(const struct model *m, struct dev_train *t)
{
    const struct dev_model *g = m->dev;
    size_t input = dev_train_input_bytes(g, &t->limits);
    char *at = t->layers + (t->again ? (size_t)m->config.num_layers * input : 0);

    for (int i = 0; i < m->config.num_layers; i++) {
        char *end = layer_kind_of(m, i)->acts_place(&t->acts[i], &g->dims, g->dt, t->limits.max_tokens, at);
        if (t->again)
            t->acts[i].x = t->layers + (size_t)i * input;
        else
            at = end;
    }
}

/* Plans the buffers of a training step and the size of a chunk of logits. */
static void dev_train_make_plan(const struct model *m, const struct train_limits *l, struct dev_train *t,
                                struct buffer_plan *p)
{
    const struct dev_model *g = m->dev;
    struct model_dims n = g->dims;
    size_t T = (size_t)l->max_tokens, N = dev_train_max_targets(l), s = dtype_size(g->dt), row, rows;

    *p = (struct buffer_plan){.n = 0};
    t->ld_logits = (n.V + 7) / 8 * 8;
    row = (size_t)t->ld_logits * s;
    t->chunk = N * row <= LOGITS_BYTES ? (int)N : CHUNK_BYTES / row < 128 ? 128 : (int)(CHUNK_BYTES / row);
    plan_add(p, "layers", dev_train_layers_bytes(m, l, t->again), LAYERS, LAYERS_BACK, &t->layers);
    plan_add(p, "residual stream", T * (size_t)n.d * s, LAYERS, CLASSIFY_BACK, &t->x_last);
    plan_add(p, "normed input", T * (size_t)n.d * s, LAYERS, LAYERS_BACK, &t->step.h);
    plan_add(p, "mlp activation", T * (size_t)n.f * s, LAYERS, LAYERS_BACK, &t->step.act);
    plan_add(p, "step tables", dev_train_ints_of(l) * sizeof(int32_t), LAYERS, LAYERS_BACK, &t->ints);
    rows = (N + (size_t)t->chunk - 1) / (size_t)t->chunk * (size_t)t->chunk;
    plan_add(p, "last norm", rows * (size_t)n.d * s, CLASSIFY, CLASSIFY_BACK, &t->h_last);
    plan_add(p, "logits", (size_t)t->chunk * row, CLASSIFY, CLASSIFY_BACK, &t->logits);
    plan_add(p, "gradient of last norm", rows * (size_t)n.d * s, CLASSIFY_BACK, CLASSIFY_BACK, &t->dh_last);
    float **per_target[] = {&t->rstd, &t->lse, &t->logp, &t->entropy, &t->dlogp, &t->dentropy};
    for (int i = 0; i < 6; i++)
        plan_add(p, i ? NULL : "per-target numbers", N * sizeof(float), CLASSIFY, CLASSIFY_BACK, per_target[i]);
    plan_add(p, "gradient of the residual stream", T * (size_t)n.d * s, CLASSIFY_BACK, LAYERS_BACK, &t->step.dx);
    plan_add(p, "gradient of normed input", T * (size_t)n.d * s, LAYERS_BACK, LAYERS_BACK, &t->step.dh);
    plan_add(p, "gradient of mlp activation", T * (size_t)n.f * s, LAYERS_BACK, LAYERS_BACK, &t->step.dact);
    plan_add(p, "gradient of q k v", T * (size_t)n.widest_in * s, LAYERS_BACK, LAYERS_BACK, &t->step.dqkv);
    plan_add(p, NULL, T * (size_t)n.widest_pre * s, LAYERS_BACK, LAYERS_BACK, &t->step.dqk);
    plan_add(p, "gradient of attention", T * (size_t)n.widest_mix * s, LAYERS_BACK, LAYERS_BACK, &t->step.datt);
    if (m->config.output_gate)
        plan_add(p, "gated attention", T * (size_t)n.widest_mix * s, LAYERS, LAYERS_BACK, &t->step.mixed);
    if (m->config.n_linear)
        plan_add(p, "delta rule", nn_delta_scratch(&n.delta, l->max_tokens), LAYERS_BACK, LAYERS_BACK,
                 &t->step.delta_scratch);
    plan_add(p, NULL, T * (size_t)n.heads * sizeof(float), LAYERS_BACK, LAYERS_BACK, &t->step.delta);
    plan_layout(p);
}

/* What the optimiser and the gradients still need beside the slab. */
static size_t dev_train_other_bytes(const struct dev_model *g)
{
    size_t grads = g->grads ? 0 : dev_grads_size(g) + dev_window_size(g);

    return (grads + dev_part_size(g) * (size_t)(!g->m + !g->v)) * sizeof(float);
}

size_t dev_step_bytes(const struct model *m, const struct train_limits *l, bool again)
{
    struct dev_train t = {.again = again};
    struct buffer_plan p;

    dev_train_make_plan(m, l, &t, &p);
    return p.bytes;
}

size_t dev_train_bytes(const struct model *m, const struct train_limits *l)
{
    return dev_step_bytes(m, l, false) + dev_train_other_bytes(m->dev);
}

const struct train_limits *dev_train_limits(const struct dev_model *g) { return g->train ? &g->train->limits : NULL; }

static void dev_train_drop_kept(struct dev_model *g)
{
    struct dev_train *t = g->train;

    nn_device_free(g->d, t->kept_to);
    nn_device_free(g->d, t->kept);
    nn_device_free(g->d, t->kept_hold);
    free(t->host_kept_to);
    t->kept_to = t->kept = t->host_kept_to = NULL;
    t->kept_hold = NULL;
}

void dev_train_free(struct dev_model *g)
{
    struct dev_train *t = g->train;

    if (!t)
        return;
    dev_train_drop_kept(g);
    nn_device_free(g->d, t->slab);
    nn_device_free(g->d, t->rope);
    free(t->acts);
    free(t->host_ints);
    free(t->host_floats);
    free(t->pad_tokens);
    free(t->pad_targets);
    free(t->pad_cu);
    free(t->from);
    free(t);
    g->train = NULL;
}

/* Allocates what the plan says. ERR_ENV: the device has no room. */
static int dev_train_allocate(struct model *m, struct dev_train *t, const struct buffer_plan *p, struct err *e)
{
    struct dev_model *g = m->dev;
    size_t N = dev_train_max_targets(&t->limits);

    if (!g->grads && !(g->grads = nn_device_alloc(g->d, dev_grads_size(g) * sizeof(float), "gradients", e)))
        return -1;
    if (g->divided && !g->window &&
        !(g->window = nn_device_alloc(g->d, dev_window_size(g) * sizeof(float), "a layer's gradients", e)))
        return -1;
    if (!(t->slab = nn_device_alloc(g->d, p->bytes, "activations", e)))
        return -1;
    plan_place(p, t->slab);
    t->acts = xcalloc((size_t)m->config.num_layers, sizeof *t->acts);
    dev_train_place_layers(m, t);
    t->host_ints = xcalloc(dev_train_ints_of(&t->limits), sizeof *t->host_ints);
    t->host_floats = xcalloc(2 * N, sizeof *t->host_floats);
    t->from = xcalloc(N, sizeof *t->from);
    t->pad_tokens = xcalloc((size_t)t->limits.max_tokens, sizeof *t->pad_tokens);
    t->pad_targets = xcalloc((size_t)t->limits.max_tokens, sizeof *t->pad_targets);
    t->pad_cu = xcalloc((size_t)t->limits.max_tokens + 2, sizeof *t->pad_cu);
    return 0;
}

/* Makes the buffers for batches within the limits. ERR_ENV: they do not fit the device. */
int dev_train_begin(struct model *m, const struct train_limits *l, struct err *e)
{
    struct dev_model *g = m->dev;
    struct buffer_plan p;
    struct nn_dev_info info;
    struct dev_train *t;
    size_t max;

    dev_train_free(g); /* first, so that its memory counts as free */
    g->d->ops->info(g->d->q, &info);
    g->train = t = xcalloc(1, sizeof *t);
    t->limits = *l;
    max = l->max_bytes ? l->max_bytes : info.free / 100 * 96;
    dev_train_make_plan(m, l, t, &p);
    if (p.bytes + dev_train_other_bytes(g) > max) {
        size_t whole = p.bytes;
        t->again = true;
        dev_train_make_plan(m, l, t, &p);
        log_info("activations of %d tokens need %.1f GB; every layer runs again on the way back: %.1f GB",
                 l->max_tokens, (double)whole / 1e9, (double)p.bytes / 1e9);
    }
    if (plan_check(&p, dev_train_other_bytes(g), "gradients and optimiser", max, "lower the tokens per micro-batch",
                   e) < 0 ||
        dev_train_allocate(m, t, &p, e) < 0) {
        dev_train_free(g);
        return -1;
    }
    return 0;
}

/* ---- the step's tables ---- */

/* A matrix algorithm belongs to a shape, so packs of every length would need as many: rows are rounded up to a 32nd of
 * the plan. The rows added are a sequence of their own without targets: they change no result and no gradient. */
int dev_round_rows(int n, int max)
{
    int grain = max < 32 ? 128 : (max / 32 + 127) / 128 * 128, up = (n + grain - 1) / grain * grain;

    return up < max ? up : max;
}

/* The batch, padded to a size for which kernels are chosen. Borrows b or t. */
static struct train_batch dev_train_pad_batch(struct dev_train *t, const struct train_batch *b)
{
    struct train_batch x = *b;
    int T = b->cu_seqlens[b->n_seq], up = dev_round_rows(T, t->limits.max_tokens);

    if (up == T)
        return x;
    memcpy(t->pad_tokens, b->tokens, (size_t)T * sizeof *t->pad_tokens);
    memcpy(t->pad_targets, b->targets, (size_t)T * sizeof *t->pad_targets);
    memcpy(t->pad_cu, b->cu_seqlens, (size_t)(b->n_seq + 1) * sizeof *t->pad_cu);
    for (int i = T; i < up; i++) {
        t->pad_tokens[i] = 0;
        t->pad_targets[i] = -1;
    }
    t->pad_cu[++x.n_seq] = up;
    x.tokens = t->pad_tokens, x.targets = t->pad_targets, x.cu_seqlens = t->pad_cu;
    return x;
}

struct tables {
    int32_t *tokens, *pos, *seq, *cu, *tiles, *at, *target, *order, *ids, *start;
};

/* The same places in host memory and on the device. What embed_backward reads alone lies last: it is made and goes up
 * while the layers run. */
static struct tables dev_train_tables_at(int32_t *p, int T, int n_seq, int n_tiles, int N)
{
    struct tables s = {.tokens = p};

    s.pos = s.tokens + T;
    s.seq = s.pos + T;
    s.cu = s.seq + T;
    s.tiles = s.cu + n_seq + 1;
    s.at = s.tiles + 2 * n_tiles;
    s.target = s.at + N;
    s.order = s.target + N;
    return s;
}

int dev_count_tiles(int n_seq, const int32_t *cu)
{
    int n = 0;

    for (int i = 0; i < n_seq; i++)
        n += (cu[i + 1] - cu[i] + NN_ATTN_TILE - 1) / NN_ATTN_TILE;
    return n;
}

/* The last tiles of sequences look back furthest, so they come first; equal ones keep the order of the sequences. */
void dev_fill_tiles(int n_seq, const int32_t *cu, int32_t *tiles)
{
    int deepest = 0;

    for (int i = 0; i < n_seq; i++) {
        int n = (cu[i + 1] - cu[i] + NN_ATTN_TILE - 1) / NN_ATTN_TILE;
        deepest = n > deepest ? n : deepest;
    }
    for (int k = deepest - 1; k >= 0; k--)
        for (int i = 0; i < n_seq; i++)
            if (k * NN_ATTN_TILE < cu[i + 1] - cu[i]) {
                *tiles++ = i;
                *tiles++ = k;
            }
}

/* Counts each id of the tokens into count, which has V + 1 zeros. Returns the number of different ids. */
static int dev_train_count_ids(const int32_t *tokens, int T, int32_t *count)
{
    int n = 0;

    for (int t = 0; t < T; t++)
        n += count[tokens[t]]++ == 0;
    return n;
}

/* Rows by token, in order, so that gradients of embeddings are summed in one order: fills s->order (T), ids and start
 * (one more than ids). count: how often each id occurs, by dev_train_count_ids; used up. */
static void dev_train_fill_order(const int32_t *tokens, int T, int V, int32_t *count, struct tables *s)
{
    int at = 0, n = 0;

    for (int v = 0; v < V; v++)
        if (count[v]) {
            int had = count[v];
            s->ids[n] = v;
            s->start[n++] = at;
            count[v] = at;
            at += had;
        }
    s->start[n] = at;
    for (int t = 0; t < T; t++)
        s->order[count[tokens[t]]++] = t;
}

/* Fills the tables that the step uploads: tokens, positions, targets. */
static void dev_train_fill_rows(struct dev_train *t, const struct train_batch *b, struct tables *s)
{
    int N = 0;

    for (int i = 0; i < b->n_seq; i++)
        for (int k = b->cu_seqlens[i]; k < b->cu_seqlens[i + 1]; k++) {
            s->tokens[k] = b->tokens[k];
            s->pos[k] = k - b->cu_seqlens[i];
            s->seq[k] = i;
            if (b->targets[k] >= 0) {
                s->at[N] = k;
                s->target[N] = b->targets[k];
                t->from[N++] = k;
            }
        }
    memcpy(s->cu, b->cu_seqlens, (size_t)(b->n_seq + 1) * sizeof *s->cu);
}

/* Fills the step's description for the kernels. */
static void dev_train_describe(struct dev_model *g, const struct train_batch *b, const struct tables *s, int n_tiles)
{
    const struct model_dims *n = &g->dims;
    struct dev_step *p = &g->train->step;

    p->T = b->cu_seqlens[b->n_seq];
    p->pos = s->pos;
    p->rope = g->train->rope;
    p->attn = (struct nn_attn){.T = p->T, .heads = n->heads, .kv_heads = n->kv_heads, .dim = n->dim,
                               .ld_q = n->q + n->kv,
                               .ld_k = n->q + n->kv, .ld_v = n->qkv, .ld_o = n->q, .n_seq = b->n_seq,
                               .n_tiles = n_tiles,
                               .cu = s->cu, .pos = s->pos, .seq = s->seq, .tiles = s->tiles};
}

/* Uploads rotary tables for the longest sequence, if those there are shorter. */
static int dev_train_set_rope(struct model *m, const struct train_batch *b, struct err *e)
{
    struct dev_model *g = m->dev;
    struct dev_train *t = g->train;
    int longest = 1;
    float *host;
    size_t bytes;

    for (int s = 0; s < b->n_seq; s++)
        if (b->cu_seqlens[s + 1] - b->cu_seqlens[s] > longest)
            longest = b->cu_seqlens[s + 1] - b->cu_seqlens[s];
    if (longest <= t->rope_positions)
        return 0;
    nn_device_free(g->d, t->rope);
    t->rope_positions = (longest + 255) / 256 * 256;
    bytes = (size_t)t->rope_positions * (size_t)g->dims.rot * sizeof *host;
    host = model_rope_table(&m->config, t->rope_positions);
    if ((t->rope = nn_device_alloc(g->d, bytes, "rotations", e)))
        g->d->ops->upload(g->d->q, t->rope, host, bytes);
    free(host);
    return t->rope ? 0 : -1;
}

/* The kept sets of a batch, which are as large as they are: beside the plan, and gone with the next batch. */
static int dev_train_set_kept(struct dev_model *g, const struct train_batch *b, struct err *e)
{
    struct dev_train *t = g->train;
    size_t N = (size_t)t->n_targets, total = 0;
    int32_t *ids;

    dev_train_drop_kept(g);
    if (!b->kept)
        return 0;
    t->host_kept_to = xcalloc(N + 1, sizeof *t->host_kept_to);
    for (size_t i = 0; i < N; i++)
        t->host_kept_to[i + 1] = (int32_t)(total += (size_t)b->n_kept[t->from[i]]);
    ids = xmalloc((total + 1) * sizeof *ids);
    for (size_t i = 0; i < N; i++)
        if (b->n_kept[t->from[i]])
            memcpy(ids + t->host_kept_to[i], b->kept[t->from[i]], (size_t)b->n_kept[t->from[i]] * sizeof *ids);
    t->kept_to = nn_device_alloc(g->d, (N + 1) * sizeof *ids, "kept sets", e);
    t->kept = nn_device_alloc(g->d, (total + 1) * sizeof *ids, "kept sets", e);
    t->kept_hold = nn_device_alloc(g->d, (total + 1) * sizeof(float), "kept sets", e);
    if (t->kept_to && t->kept && t->kept_hold) {
        g->d->ops->upload(g->d->q, t->kept_to, t->host_kept_to, (N + 1) * sizeof *ids);
        g->d->ops->upload(g->d->q, t->kept, ids, total * sizeof *ids);
    }
    free(ids);
    return t->kept_to && t->kept && t->kept_hold ? 0 : -1;
}

/* Masks logits of a chunk that sampling had left out, where a batch says so. */
static void dev_train_keep_chunk(struct dev_model *g, int from, int rows)
{
    const struct dev_train *t = g->train;

    if (t->kept)
        g->d->ops->keep_rows(g->d->q, g->dt, rows, g->dims.V, t->ld_logits, t->logits, t->kept_to + from, t->kept,
                             LOGIT_OUT, t->kept_hold);
}

/* Rows of each id, for the embedding's gradient. */
static void dev_train_set_ids(struct dev_model *g)
{
    struct dev_train *t = g->train;
    int32_t *host = t->host_ints + (t->order - t->ints), *count = xcalloc((size_t)g->dims.V + 1, sizeof *count);
    int T = t->step.T;
    struct tables s = {.order = host, .ids = host + T};

    t->n_ids = dev_train_count_ids(t->host_ints, T, count);
    s.start = s.ids + t->n_ids;
    dev_train_fill_order(t->host_ints, T, g->dims.V, count, &s);
    free(count);
    g->d->ops->upload(g->d->q, t->ints + (t->order - t->ints), host, (size_t)(T + 2 * t->n_ids + 1) * sizeof *host);
    t->ids = t->order + T;
    t->start = t->ids + t->n_ids;
}

/* Uploads a batch. */
static int dev_train_set_batch(struct model *m, const struct train_batch *given, struct err *e)
{
    struct dev_model *g = m->dev;
    struct dev_train *t = g->train;
    struct train_batch padded = dev_train_pad_batch(t, given), *b = &padded;
    int T = b->cu_seqlens[b->n_seq], n_tiles = dev_count_tiles(b->n_seq, b->cu_seqlens), N = 0;
    struct tables s;

    if (dev_train_set_rope(m, b, e) < 0)
        return -1;
    for (int i = 0; i < T; i++)
        N += b->targets[i] >= 0;
    s = dev_train_tables_at(t->host_ints, T, b->n_seq, n_tiles, N);
    dev_train_fill_rows(t, b, &s);
    dev_fill_tiles(b->n_seq, b->cu_seqlens, s.tiles);
    g->d->ops->upload(g->d->q, t->ints, t->host_ints, (size_t)(s.order - t->host_ints) * sizeof *t->ints);
    s = dev_train_tables_at(t->ints, T, b->n_seq, n_tiles, N);
    t->n_targets = N;
    t->inv_temp = b->temperature > 0 ? 1.0f / b->temperature : 1.0f;
    t->tokens = s.tokens, t->at = s.at, t->target = s.target, t->order = s.order;
    dev_train_describe(g, b, &s, n_tiles);
    return dev_train_set_kept(g, given, e);
}

/* ---- forward ---- */

/* Queues the embedding and all layers. */
static void dev_train_run_layers(struct model *m)
{
    struct dev_model *g = m->dev;
    struct dev_train *t = g->train;
    int L = m->config.num_layers;

    g->d->ops->embed(g->d->q, g->dt, t->step.T, g->dims.d, t->tokens, g->embed, t->acts[0].x);
    for (int i = 0; i < L; i++)
        layer_kind_of(m, i)->forward(g, i, &t->step, &t->acts[i], i + 1 < L ? t->acts[i + 1].x : t->x_last);
}

/* Queues the logits of rows [from, from + rows). */
static void dev_train_logits_chunk(struct dev_model *g, int from, int rows)
{
    const struct dev_train *t = g->train;
    const struct model_dims *n = &g->dims;

    dev_linear(g, rows, n->V, n->d, dev_tensor_at(g, t->h_last, (size_t)from * (size_t)n->d), n->d, g->head, NULL,
               t->logits, t->ld_logits);
}

/* Rows [from, to) of x become zeros. */
static void dev_train_clear_rows(struct dev_model *g, void *x, int width, int from, int to)
{
    if (from < to)
        g->d->ops->zero(g->d->q, dev_tensor_at(g, x, (size_t)from * (size_t)width),
                        (size_t)(to - from) * (size_t)width * dtype_size(g->dt));
}

/* Queues log-probabilities and entropies of all targets, chunk by chunk. */
static void dev_train_classify(struct dev_model *g)
{
    struct dev_train *t = g->train;
    int N = t->n_targets;

    g->d->ops->rmsnorm(g->d->q, g->dt, N, g->dims.d, t->at, t->x_last, g->final_norm, g->dims.plus, g->eps, t->h_last,
                       t->rstd);
    dev_train_clear_rows(g, t->h_last, g->dims.d, N, N / t->chunk * t->chunk + dev_round_rows(N % t->chunk, t->chunk));
    for (int i = 0; i < N; i += t->chunk) {
        int rows = N - i < t->chunk ? N - i : t->chunk;
        dev_train_logits_chunk(g, i, dev_round_rows(rows, t->chunk));
        dev_train_keep_chunk(g, i, rows);
        g->d->ops->classifier(g->d->q, g->dt, rows, g->dims.V, t->ld_logits, t->logits, t->inv_temp, t->target + i,
                              t->lse + i, t->logp + i, t->entropy + i);
    }
}

int dev_forward(struct model *m, const struct train_batch *b, float *logp, float *entropy, struct err *e)
{
    struct dev_model *g = m->dev;
    struct dev_train *t = g->train;
    int given = b->cu_seqlens[b->n_seq];
    size_t N;

    if (dev_train_set_batch(m, b, e) < 0)
        return -1;
    N = (size_t)t->n_targets;
    dev_train_run_layers(m);
    memset(logp, 0, (size_t)given * sizeof *logp);
    if (entropy)
        memset(entropy, 0, (size_t)given * sizeof *entropy);
    if (N) {
        dev_train_classify(g);
        dev_train_set_ids(g);
        g->d->ops->download(g->d->q, t->host_floats, t->logp, N * sizeof(float));
        for (size_t i = 0; i < N; i++)
            logp[t->from[i]] = t->host_floats[i];
        if (entropy) {
            g->d->ops->download(g->d->q, t->host_floats, t->entropy, N * sizeof(float));
            for (size_t i = 0; i < N; i++)
                entropy[t->from[i]] = t->host_floats[i];
        }
    }
    t->ready = true;
    return nn_device_sync(g->d, e);
}

/* ---- backward ---- */

/* Queues the classifier's gradients. dlogp, dentropy: of each row of the batch; the latter may be NULL. */
static void dev_train_classify_backward(struct dev_model *g, const float *dlogp, const float *dentropy)
{
    struct dev_train *t = g->train;
    const struct nn_dev_ops *op = g->d->ops;
    const struct model_dims *n = &g->dims;
    int N = t->n_targets, last = g->n_layers + 1;
    size_t d = (size_t)n->d, bytes = (size_t)N * sizeof(float);

    for (int i = 0; i < N; i++) {
        t->host_floats[i] = dlogp[t->from[i]];
        t->host_floats[N + i] = dentropy ? dentropy[t->from[i]] : 0;
    }
    op->upload(g->d->q, t->dlogp, t->host_floats, bytes);
    if (dentropy)
        op->upload(g->d->q, t->dentropy, t->host_floats + N, bytes);
    dev_bucket_open(g, g->head == g->embed ? 0 : last);
    for (int i = 0; i < N; i += t->chunk) {
        int rows = N - i < t->chunk ? N - i : t->chunk, up = dev_round_rows(rows, t->chunk);
        if (N > t->chunk) {
            dev_train_logits_chunk(g, i, up);
            dev_train_keep_chunk(g, i, rows);
        }
        op->classifier_backward(g->d->q, g->dt, rows, n->V, t->ld_logits, t->logits, t->inv_temp, t->target + i,
                                t->lse + i,
                                t->entropy + i, t->dlogp + i, dentropy ? t->dentropy + i : NULL);
        dev_train_clear_rows(g, t->logits, t->ld_logits, rows, up);
        dev_linear_dx(g, up, n->V, n->d, t->logits, t->ld_logits, g->head, dev_tensor_at(g, t->dh_last, (size_t)i * d),
                      n->d);
        dev_linear_dw(g, up, n->V, n->d, t->logits, t->ld_logits, dev_tensor_at(g, t->h_last, (size_t)i * d), n->d,
                      g->head);
    }
    if (g->head == g->embed) {
        dev_bucket_close(g);
        dev_bucket_open(g, last);
    }
    op->zero(g->d->q, t->step.dx, (size_t)t->step.T * d * dtype_size(g->dt));
    op->rmsnorm_backward(g->d->q, g->dt, N, n->d, t->at, t->x_last, g->final_norm, n->plus, t->rstd, t->dh_last,
                         t->step.dx,
                         dev_grad(g, g->final_norm), NULL);
    dev_bucket_close(g);
}

int dev_backward(struct model *m, const float *dlogp, const float *dentropy, struct err *e)
{
    struct dev_model *g = m->dev;
    struct dev_train *t = g->train;

    if (!t || !t->ready)
        return err_set(e, ERR_BUG, "model_backward without a model_forward before it");
    t->ready = false;
    g->norm_known = false;
    if (g->pending != 1) {
        g->d->ops->scale(g->d->q, dev_grads_size(g), g->grads, g->pending);
        g->pending = 1;
    }
    if (!t->n_targets)
        return model_backward_nothing(m, e);
    dev_train_classify_backward(g, dlogp, dentropy);
    for (int i = m->config.num_layers - 1; i >= 0; i--) {
        if (t->again && i + 1 < m->config.num_layers) /* the last one is still there; a next input stays what it is */
            layer_kind_of(m, i)->forward(g, i, &t->step, &t->acts[i], t->acts[i + 1].x);
        dev_bucket_open(g, 1 + i);
        layer_kind_of(m, i)->backward(g, i, &t->step, &t->acts[i]);
        dev_bucket_close(g);
    }
    dev_bucket_open(g, 0);
    g->d->ops->embed_backward(g->d->q, g->dt, t->n_ids, g->dims.d, t->ids, t->start, t->order, t->step.dx,
                              dev_grad(g, g->embed));
    dev_bucket_close(g);
    return nn_device_sync(g->d, e);
}

/* ---- logits for tools ---- */

int dev_logits(struct model *m, const int32_t *tokens, int n, float *ret, struct err *e)
{
    struct dev_model *g = m->dev;
    int32_t cu[2] = {0, n}, *targets = xmalloc((size_t)n * sizeof *targets);
    struct train_batch b = {.tokens = tokens, .cu_seqlens = cu, .n_seq = 1, .targets = targets};
    struct train_limits l = {.max_tokens = n};
    struct dev_train *t;
    int rc, V = g->dims.V;
    size_t pitch;

    for (int i = 0; i < n; i++)
        targets[i] = tokens[i]; /* any: every row is wanted */
    rc = g->train && g->train->limits.max_tokens >= n && !g->train->limits.max_targets ? 0 : dev_train_begin(m, &l, e);
    t = g->train;
    if (rc == 0 && (rc = dev_train_set_batch(m, &b, e)) == 0) {
        dev_train_run_layers(m);
        g->d->ops->rmsnorm(g->d->q, g->dt, n, g->dims.d, t->at, t->x_last, g->final_norm, g->dims.plus, g->eps,
                           t->h_last, t->rstd);
        pitch = (size_t)t->ld_logits;
        float *wide = xmalloc((size_t)t->chunk * pitch * sizeof *wide);
        float *f32 = nn_device_alloc(g->d, (size_t)t->chunk * pitch * sizeof *f32, "logits", e);
        for (int i = 0; f32 && i < n; i += t->chunk) {
            int rows = n - i < t->chunk ? n - i : t->chunk;
            dev_train_logits_chunk(g, i, rows);
            g->d->ops->to_f32(g->d->q, g->dt, (size_t)rows * pitch, t->logits, f32);
            g->d->ops->download(g->d->q, wide, f32, (size_t)rows * pitch * sizeof *f32);
            for (int r = 0; r < rows; r++)
                memcpy(ret + (size_t)(i + r) * (size_t)V, wide + (size_t)r * pitch, (size_t)V * sizeof *ret);
        }
        rc = f32 ? nn_device_sync(g->d, e) : -1;
        nn_device_free(g->d, f32);
        free(wide);
        t->ready = false;
    }
    free(targets);
    return rc;
}
