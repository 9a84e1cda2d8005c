/* kv_cache.c - storing keys and values, and attention of single queries against them. */
#include "nn/kv_cache.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/mem.h"

#define ROWS_PER_TASK 8 /* rows that read a shared prefix together */

static int kv_cache_round_to(int n, int step) { return (n + step - 1) / step * step; }

static size_t kv_cache_keys_floats(const struct model *m, int capacity)
{
    return (size_t)kv_cache_round_to(capacity, m->ops->nr) * (size_t)m->config.head_dim;
}

static size_t kv_cache_head_floats(const struct model *m, int capacity)
{
    return kv_cache_keys_floats(m, capacity) + (size_t)capacity *
           (size_t)kv_cache_round_to(m->config.head_dim, m->ops->nr);
}

/* Floats of all keys, behind which the values lie. */
static size_t kv_cache_keys_end(const struct model *m, int capacity)
{
    size_t layers = (size_t)(m->config.num_layers - m->config.n_linear);

    return layers * (size_t)m->config.num_kv_heads * kv_cache_head_floats(m, capacity);
}

static size_t kv_cache_conv_floats(const struct model *m)
{
    struct model_dims n = model_dims(m);

    return m->config.n_linear ? (size_t)(n.taps - 1) * (size_t)n.conv : 0;
}

static size_t kv_cache_state_floats(const struct model *m)
{
    struct model_dims n = model_dims(m);

    return (size_t)n.mix[MIX_DELTA] * (size_t)n.delta.k_dim;
}

size_t kv_cache_floats(const struct model *m, int capacity)
{
    return kv_cache_keys_end(m, capacity) + (size_t)m->config.n_linear *
           (kv_cache_conv_floats(m) + kv_cache_state_floats(m));
}

void kv_cache_place(struct kv_cache *c, int capacity, float *slab)
{
    *c = (struct kv_cache){.slab = slab, .capacity = capacity};
}

/* The keys of a layer and head, transposed for the product. */
static float *kv_keys(const struct model *m, const struct kv_cache *c, int layer, int kv_head)
{
    size_t at = (size_t)m->layers[layer].ordinal * (size_t)m->config.num_kv_heads + (size_t)kv_head;

    return c->slab + at * kv_cache_head_floats(m, c->capacity);
}

float *kv_conv(const struct model *m, const struct kv_cache *c, int layer)
{
    return c->slab + kv_cache_keys_end(m, c->capacity) +
           (size_t)m->layers[layer].ordinal * (kv_cache_conv_floats(m) + kv_cache_state_floats(m));
}

float *kv_state(const struct model *m, const struct kv_cache *c, int layer)
{
    return kv_conv(m, c, layer) + kv_cache_conv_floats(m);
}

void kv_copy_states(const struct model *m, const struct kv_cache *from, struct kv_cache *to)
{
    size_t floats = (size_t)m->config.n_linear * (kv_cache_conv_floats(m) + kv_cache_state_floats(m));

    memcpy(to->slab + kv_cache_keys_end(m, to->capacity), from->slab + kv_cache_keys_end(m, from->capacity),
           floats * sizeof(float));
}

void kv_fill_conv(const struct model *m, struct kv_cache *c, int layer, int n, const float *x, int ld)
{
    struct model_dims d = model_dims(m);
    float *to = kv_conv(m, c, layer);
    size_t row = (size_t)d.conv;

    for (int i = n - (d.taps - 1); i < n; i++, to += row)
        if (i < 0)
            memset(to, 0, row * sizeof *to);
        else
            memcpy(to, x + (size_t)i * (size_t)ld, row * sizeof *to);
}

/* The values of a layer and head (capacity, head_dim). */
static float *kv_values(const struct model *m, const struct kv_cache *c, int layer, int kv_head)
{
    return kv_keys(m, c, layer, kv_head) + kv_cache_keys_floats(m, c->capacity);
}

void kv_append(const struct model *m, struct kv_cache *c, int layer, const float *k, const float *v)
{
    int nr = m->ops->nr, dim = m->config.head_dim;

    for (int h = 0; h < m->config.num_kv_heads; h++, k += dim, v += dim) {
        float *keys = kv_keys(m, c, layer, h) + (size_t)(c->n / nr) * (size_t)(dim * nr) + c->n % nr;
        float *values = kv_values(m, c, layer, h) + (size_t)c->n * (size_t)nr;
        for (int i = 0; i < dim; i++)
            keys[i * nr] = k[i];
        for (int i = 0; i < dim; i += nr, values += (size_t)c->capacity * (size_t)nr) {
            int live = dim - i < nr ? dim - i : nr;
            memcpy(values, v + i, (size_t)live * sizeof *v);
            memset(values + live, 0, (size_t)(nr - live) * sizeof *v);
        }
    }
}

void kv_fill(const struct model *m, struct kv_cache *c, int layer, int n, const float *k, int ld_k, const float *v,
             int ld_v)
{
    int dim = m->config.head_dim;

    for (int h = 0; h < m->config.num_kv_heads; h++) {
        m->ops->pack_nt(k + h * dim, ld_k, n, dim, kv_keys(m, c, layer, h));
        m->ops->pack_nn(v + h * dim, ld_v, dim, n, kv_values(m, c, layer, h)); /* panel stride n: capacity == n */
    }
}

struct decode_task {
    int from, to; /* rows */
    int kv_head;
};

size_t decode_scratch(const struct model *m, int max_prefix, int max_own)
{
    int group = m->config.num_heads / m->config.num_kv_heads, rows = ROWS_PER_TASK * group;

    return (size_t)rows * (size_t)(2 * m->config.head_dim + max_prefix + max_own + 2 * m->ops->nr) + 64;
}

/* Scores against the prefix for all rows together, against each row's own part apart; one softmax over both. */
static void kv_cache_decode_task_run(const struct model *m, int layer, const struct decode_task *t,
                                     const struct decode_row *rows,
                                     const float *q, int ld_q, float *out, float *scratch)
{
    const struct ops *op = m->ops;
    int dim = m->config.head_dim, group = m->config.num_heads / m->config.num_kv_heads;
    int n_rows = t->to - t->from, M = n_rows * group, at_head = t->kv_head * group * dim,
        ld_out = m->config.num_heads * dim;
    struct kv_cache *prefix = rows[t->from].prefix;
    int np = prefix->n, longest = 0, ld;
    float scale = 1.0f / sqrtf((float)dim);

    for (int r = t->from; r < t->to; r++)
        longest = rows[r].own->n > longest ? rows[r].own->n : longest;
    ld = np + longest;
    float *qb = scratch, *ob = qb + M * dim, *p = ob + M * dim;
    for (int r = 0; r < n_rows; r++)
        memcpy(qb + r * group * dim, q + (size_t)(t->from + r) * (size_t)ld_q + at_head, (size_t)(group * dim) *
               sizeof *q);
    op->gemm(M, np, dim, qb, dim, false, kv_keys(m, prefix, layer, t->kv_head), p, ld, GEMM_SET);
    for (int r = 0; r < n_rows; r++) {
        const struct kv_cache *own = rows[t->from + r].own;
        op->gemm(group, own->n, dim, qb + r * group * dim, dim, false, kv_keys(m, own, layer, t->kv_head),
                 p + (size_t)(r * group) * (size_t)ld + np, ld, GEMM_SET);
    }
    for (int i = 0; i < M; i++) {
        float *row = p + (size_t)i * (size_t)ld, max, sum;
        int n = np + rows[t->from + i / group].own->n;
        sum = op->softmax_row(n, scale, row, &max);
        op->scale((size_t)n, row, 1.0f / sum);
    }
    op->gemm_part(M, dim, np, prefix->capacity, p, ld, kv_values(m, prefix, layer, t->kv_head), ob, dim, GEMM_SET);
    for (int r = 0; r < n_rows; r++) {
        const struct kv_cache *own = rows[t->from + r].own;
        op->gemm_part(group, dim, own->n, own->capacity, p + (size_t)(r * group) * (size_t)ld + np, ld,
                      kv_values(m, own, layer, t->kv_head), ob + r * group * dim, dim, GEMM_ADD);
        memcpy(out + (size_t)(t->from + r) * (size_t)ld_out + at_head, ob + r * group * dim,
               (size_t)(group * dim) * sizeof *out);
    }
}

/* Groups rows that share a prefix into tasks; returns how many. */
static int kv_cache_make_tasks(const struct model *m, int n_rows, const struct decode_row *rows,
                               struct decode_task *tasks)
{
    int n = 0;

    for (int from = 0, to; from < n_rows; from = to) {
        for (to = from + 1; to < n_rows && to - from < ROWS_PER_TASK && rows[to].prefix == rows[from].prefix; to++)
            ;
        for (int h = 0; h < m->config.num_kv_heads; h++)
            tasks[n++] = (struct decode_task){from, to, h};
    }
    return n;
}

void decode_attention(const struct model *m, int layer, int n_rows, const struct decode_row *rows, const float *q,
                      int ld_q,
                      float *out, float *scratch, size_t per_thread)
{
    struct decode_task *tasks = xmalloc((size_t)n_rows * (size_t)m->config.num_kv_heads * sizeof *tasks);
    int n = kv_cache_make_tasks(m, n_rows, rows, tasks);
    double work = 2.0 * n_rows * m->config.num_heads * m->config.head_dim * (rows[0].prefix->n + rows[0].own->n);

#pragma omp parallel for schedule(dynamic) if (work > 2e6)
    for (int i = 0; i < n; i++)
        kv_cache_decode_task_run(m, layer, &tasks[i], rows, q, ld_q, out,
                                 scratch + per_thread * (size_t)omp_get_thread_num());
    free(tasks);
}
