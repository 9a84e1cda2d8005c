/* model_train.c - life of one training step: plan once; then embed, layers, classifier, and the same way back.
 *
 * Kept per layer: the two residual streams, what is projected into the mixer before and after norm and rotation (or
 * convolution), the mixer's output before and behind its gate, gate and up. Recomputed on the way back because they
 * are cheap: the normed inputs, silu(gate) * up, the probabilities. The last
 * layer goes on behind its attention with only the rows that have a target: prompts end there. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "nn/dev_model.h"
#include "nn/model_private.h"

#define MIN_SHARED 16 /* a shorter common beginning is not worth a task of its own */
#define LOGITS_BYTES ((size_t)384 << 20) /* logits kept between forward and backward; beyond, they are recomputed */

struct model_train {
    struct train_limits limits;
    int chunk;               /* rows of logits at a time */
    float *slab;
    struct layer_acts *acts; /* one per layer */
    float *x_last;           /* (N, d) residual stream after the last layer, at rows that have a target */
    float *mixed_last;       /* (N, mix) the mixer's output in the last layer at those rows */
    float *h, *act;          /* (T, d) (T, f) */
    float *dx, *dh;          /* (T, d) each */
    float *din, *dpre;       /* (T, widest_in) (T, widest_pre) */
    float *dmixed;           /* (T, widest_mix) */
    float *packed;           /* (T, max(d, f, mix)) activations as right-hand side of a weight gradient */
    float *attn;             /* per thread */
    size_t attn_per_thread;
    float *h_last, *dh_last; /* (N, d) x_last normed, and its gradient */
    float *logits;           /* (chunk, V) */
    float *rstd, *lse, *logp, *entropy, *dlogp, *dentropy; /* (N) */
    int32_t *pos;            /* (T) */
    int32_t *at, *target;    /* (N) row and id of each target */
    int32_t *from;           /* (N) position of each target in the batch */
    int32_t *shared, *first; /* (n_seq) see attn_seqs */
    float *rope;
    int rope_positions;
    /* state between forward and backward */
    bool ready;
    struct pack_geometry geo;
    int32_t *cu, *tokens;    /* (n_seq + 1) (T) rows of the step */
    int n_targets;
    float inv_temp;
    const int32_t *const *kept; /* of the batch */
    const int *n_kept;
};

struct plan_line {
    const char *name;
    size_t floats;
    float **where;
};

static int model_train_max_int(int a, int b) { return a > b ? a : b; }

/* Every buffer is one line, so that the sum that is refused is the sum that is allocated. */
static int model_train_plan_lines(const struct model *m, const struct train_limits *l, struct model_train *t,
                                  struct plan_line *out)
{
    struct model_dims n = model_dims(m);
    size_t T = (size_t)l->max_tokens, N = (size_t)(l->max_targets ? l->max_targets : l->max_tokens);
    size_t wide = (size_t)model_train_max_int(n.d, model_train_max_int(n.f, n.widest_mix)) + (size_t)m->ops->nr;
    size_t rows = LOGITS_BYTES / sizeof(float) / (size_t)n.V;
    int k = 0;

    t->chunk = rows < 64 ? 64 : rows > N ? (int)N : (int)rows;
    t->attn_per_thread = model_mix_scratch(m, l->max_tokens);
    out[k++] = (struct plan_line){"residual stream", N * (size_t)n.d, &t->x_last};
    out[k++] = (struct plan_line){"normed input", T * (size_t)n.d, &t->h};
    out[k++] = (struct plan_line){"mlp activation", T * (size_t)n.f, &t->act};
    out[k++] = (struct plan_line){"gradient of the residual stream", T * (size_t)n.d, &t->dx};
    out[k++] = (struct plan_line){"gradient of normed input", T * (size_t)n.d, &t->dh};
    out[k++] = (struct plan_line){"gradient of projections", T * (size_t)n.widest_in, &t->din};
    out[k++] = (struct plan_line){"gradient of rotated q k", T * (size_t)n.widest_pre, &t->dpre};
    out[k++] = (struct plan_line){"gradient of attention", T * (size_t)n.widest_mix, &t->dmixed};
    out[k++] = (struct plan_line){"packed activations", (T > N ? T : N) * wide, &t->packed};
    out[k++] = (struct plan_line){"attention scratch", t->attn_per_thread * (size_t)omp_get_max_threads(), &t->attn};
    out[k++] = (struct plan_line){"last attention", N * (size_t)n.widest_mix, &t->mixed_last};
    out[k++] = (struct plan_line){"last norm", N * (size_t)n.d, &t->h_last};
    out[k++] = (struct plan_line){"gradient of last norm", N * (size_t)n.d, &t->dh_last};
    out[k++] = (struct plan_line){"logits", (size_t)t->chunk * (size_t)n.V, &t->logits};
    out[k++] = (struct plan_line){"per-target numbers", N, &t->rstd};
    out[k++] = (struct plan_line){"", N, &t->lse};
    out[k++] = (struct plan_line){"", N, &t->logp};
    out[k++] = (struct plan_line){"", N, &t->entropy};
    out[k++] = (struct plan_line){"", N, &t->dlogp};
    out[k++] = (struct plan_line){"", N, &t->dentropy};
    out[k++] = (struct plan_line){"layers", model_acts_floats(m, l->max_tokens, true), NULL};
    return k;
}

#define MAX_LINES 32

/* Floats of a plan of k lines, each padded to 16. */
static size_t model_train_plan_floats(const struct plan_line *line, int k)
{
    size_t sum = 0;

    for (int i = 0; i < k; i++)
        sum += (line[i].floats + 15) / 16 * 16;
    return sum;
}

size_t model_train_bytes(const struct model *m, const struct train_limits *l)
{
    struct model_train t;
    struct plan_line lines[MAX_LINES];
    int k;

    if (m->dev)
        return dev_train_bytes(m, l);
    k = model_train_plan_lines(m, l, &t, lines);

    return model_train_plan_floats(lines, k) * sizeof(float) + 2 * model_packs_bytes(m) +
           (m->grads ? 0 : m->n_params * sizeof(float));
}

/* Says what of the plan needs how many MB. Always -1. */
static int model_train_refuse_plan(const struct model *m, const struct train_limits *l, const struct plan_line *line,
                                   int k, size_t max, struct err *e)
{
    struct buf b;

    buf_init(&b, 900);
    buf_addf(&b, "training needs %.0f MB but %.0f MB are allowed; lower the tokens per micro-batch (%d):",
             (double)model_train_bytes(m, l) / 1e6, (double)max / 1e6, l->max_tokens);
    buf_addf(&b, " gradients %.0f, packed weights %.0f", (double)m->n_params * 4e-6,
             2e-6 * (double)model_packs_bytes(m));
    for (int i = 0; i < k; i++)
        if (line[i].floats > 250000)
            buf_addf(&b, ", %s %.0f", line[i].name, (double)line[i].floats * 4e-6);
    buf_adds(&b, " MB");
    err_set(e, ERR_ENV, "%s", b.p);
    buf_free(&b);
    return -1;
}

void model_train_free(struct model *m)
{
    struct model_train *t = m->train;

    if (!t)
        return;
    slab_free(t->slab);
    free(t->acts);
    free(t->pos);
    free(t->at);
    free(t->target);
    free(t->from);
    free(t->shared);
    free(t->first);
    free(t->rope);
    free(t->cu);
    free(t->tokens);
    free(t);
    m->train = NULL;
}

/* Points the plan's buffers into the slab. */
static void model_train_place(struct model *m, struct model_train *t, const struct plan_line *line, int k)
{
    struct model_dims n = model_dims(m);
    float *at = t->slab;

    for (int i = 0; i < k; i++) {
        float *p = at;
        if (line[i].where)
            *line[i].where = p;
        else
            for (int j = 0; j < m->config.num_layers; j++)
                p = layer_acts_place(&t->acts[j], &n, m->layers[j].mix, t->limits.max_tokens, p);
        at += (line[i].floats + 15) / 16 * 16;
    }
}

int model_train_begin(struct model *m, const struct train_limits *l, struct err *e)
{
    struct plan_line lines[MAX_LINES];
    struct model_train *t = xcalloc(1, sizeof *t);
    size_t max = l->max_bytes ? l->max_bytes : memory_available() / 10 * 8, N;
    int k;

    if (l->max_tokens < 1) {
        free(t);
        return err_set(e, ERR_INPUT, "a micro-batch of %d tokens is empty", l->max_tokens);
    }
    if (m->dev) {
        free(t);
        return dev_train_begin(m, l, e);
    }
    model_train_free(m); /* first, so that its memory counts as free */
    t->limits = *l;
    N = (size_t)(l->max_targets ? l->max_targets : l->max_tokens);
    k = model_train_plan_lines(m, l, t, lines);
    if (model_train_bytes(m, l) > max) {
        free(t);
        return model_train_refuse_plan(m, l, lines, k, max, e);
    }
    if (!m->grads && !(m->grads = slab_alloc(m->n_params, e, "gradients"))) {
        free(t);
        return -1;
    }
    if (!(t->slab = slab_alloc(model_train_plan_floats(lines, k), e, "activations"))) {
        free(t);
        return -1;
    }
    t->acts = xcalloc((size_t)m->config.num_layers, sizeof *t->acts);
    t->pos = xcalloc((size_t)l->max_tokens, sizeof *t->pos);
    t->tokens = xcalloc((size_t)l->max_tokens, sizeof *t->tokens);
    t->cu = xcalloc((size_t)l->max_tokens + 1, sizeof *t->cu);
    t->at = xcalloc(N, sizeof *t->at);
    t->target = xcalloc(N, sizeof *t->target);
    t->from = xcalloc(N, sizeof *t->from);
    t->shared = xcalloc((size_t)l->max_tokens, sizeof *t->shared);
    t->first = xcalloc((size_t)l->max_tokens, sizeof *t->first);
    m->train = t;
    model_train_place(m, t, lines, k);
    return 0;
}

/* ---- forward ---- */

/* ERR_INPUT or ERR_BUG for a batch that does not fit the limits or the vocabulary. */
static int model_train_check_batch(const struct model *m, const struct train_limits *l, const struct train_batch *b,
                                   struct err *e)
{
    int T, N = 0, max_n;

    if (!l)
        return err_set(e, ERR_BUG, "model_forward before model_train_begin");
    if (b->n_seq < 1 || b->cu_seqlens[0] != 0)
        return err_set(e, ERR_INPUT, "batch of %d sequences, or cu_seqlens does not start at 0", b->n_seq);
    for (int i = 0; i < b->n_seq; i++)
        if (b->cu_seqlens[i + 1] <= b->cu_seqlens[i])
            return err_set(e, ERR_INPUT, "sequence %d of the batch is empty", i);
    T = b->cu_seqlens[b->n_seq];
    if (T > l->max_tokens)
        return err_set(e, ERR_INPUT, "batch of %d tokens; the plan holds %d", T, l->max_tokens);
    for (int i = 0; i < T; i++) {
        if (b->tokens[i] < 0 || b->tokens[i] >= m->config.vocab_size || b->targets[i] >= m->config.vocab_size)
            return err_set(e, ERR_INPUT, "token %d or target %d at position %d is outside the vocabulary of %d",
                           b->tokens[i], b->targets[i], i, m->config.vocab_size);
        N += b->targets[i] >= 0;
    }
    max_n = l->max_targets ? l->max_targets : l->max_tokens;
    if (N > max_n)
        return err_set(e, ERR_INPUT, "batch of %d targets; the plan holds %d", N, max_n);
    if (!(b->temperature >= 0) || isinf(b->temperature))
        return err_set(e, ERR_INPUT, "temperature %g is not a positive number", (double)b->temperature);
    return 0;
}

/* How many leading positions sequence s need not compute, because sequence 'root' before it has the same tokens there
 * and s predicts nothing at them. */
static int model_train_shared_prefix(const struct train_batch *b, int root, int s)
{
    const int32_t *x = b->tokens + b->cu_seqlens[root], *y = b->tokens + b->cu_seqlens[s], *target = b->targets;
    int nx = b->cu_seqlens[root + 1] - b->cu_seqlens[root], ny = b->cu_seqlens[s + 1] - b->cu_seqlens[s], n = 0;

    target += b->cu_seqlens[s];
    while (n < nx && n < ny - 1 && x[n] == y[n] && target[n] < 0)
        n++;
    return n >= MIN_SHARED ? n : 0;
}

/* Rows of the step: the tokens of the batch, without repeated beginnings (samples of one prompt share it) where
 * all layers are attention: a delta layer's state in the middle of a sequence is not kept. */
static void model_train_set_rows(struct model_train *t, const struct train_batch *b, bool share)
{
    int T = 0, n = 0, root = 0;

    for (int s = 0; s < b->n_seq; s++) {
        int first = b->cu_seqlens[s], len = b->cu_seqlens[s + 1] - first;
        int shared = s && share ? model_train_shared_prefix(b, root, s) : 0;
        root = shared ? root : s;
        t->shared[s] = shared;
        t->cu[s] = T;
        t->first[s] = len;
        for (int i = len - 1; i >= shared; i--)
            t->first[s] = b->targets[first + i] >= 0 ? i : t->first[s];
        for (int i = shared; i < len; i++, T++) {
            t->tokens[T] = b->tokens[first + i];
            t->pos[T] = i;
            if (b->targets[first + i] >= 0) {
                t->at[n] = T;
                t->from[n] = first + i;
                t->target[n++] = b->targets[first + i];
            }
        }
        t->cu[s + 1] = T;
    }
    t->n_targets = n;
    t->geo = (struct pack_geometry){.T = T, .seqs = {b->n_seq, t->cu, t->shared, NULL}, .pos = t->pos};
}

/* Prepares tables of positions and targets for a batch. */
static void model_train_set_batch(struct model *m, const struct train_batch *b)
{
    struct model_train *t = m->train;
    int longest = 1;

    for (int s = 0; s < b->n_seq; s++)
        longest = model_train_max_int(longest, b->cu_seqlens[s + 1] - b->cu_seqlens[s]);
    if (longest > t->rope_positions) {
        free(t->rope);
        t->rope_positions = (longest + 255) / 256 * 256;
        t->rope = model_rope_table(&m->config, t->rope_positions);
    }
    model_train_set_rows(t, b, m->config.n_linear == 0);
    t->geo.rope = t->rope;
    t->inv_temp = b->temperature > 0 ? 1.0f / b->temperature : 1.0f;
    t->kept = b->kept;
    t->n_kept = b->n_kept;
}

/* t->logits (rows, V): the head applied to rows [from, from + rows) of the last hidden states. */
static void model_train_logits_chunk(struct model *m, int from, int rows)
{
    struct model_train *t = m->train;
    struct model_dims n = model_dims(m);

    m->ops->gemm_mt(rows, n.V, n.d, t->h_last + (size_t)from * (size_t)n.d, n.d, false,
                    model_packs(m, PACK_FORWARD)->head, t->logits, n.V, GEMM_SET);
}

/* out (N, width) = the rows of in that have a target. */
static void model_train_select_rows(const struct model_train *t, const float *in, int width, float *out)
{
    for (int i = 0; i < t->n_targets; i++)
        memcpy(out + (size_t)i * (size_t)width, in + (size_t)t->at[i] * (size_t)width, (size_t)width * sizeof *out);
}

/* The inverse in place: (N, width) becomes (T, width), other rows 0. Rows only move up, so the last goes first. */
static void model_train_spread_rows(const struct model_train *t, float *x, int width)
{
    size_t bytes = (size_t)width * sizeof *x;

    for (int r = t->geo.T - 1, i = t->n_targets - 1; r >= 0; r--) {
        float *to = x + (size_t)r * (size_t)width;
        if (i < 0 || t->at[i] != r)
            memset(to, 0, bytes);
        else if (i-- != r)
            memcpy(to, x + (size_t)(i + 1) * (size_t)width, bytes);
    }
}

/* The last layer forward, of which only rows with targets are needed. */
static void model_train_last_layer(struct model *m, const struct forward_scratch *s)
{
    struct model_train *t = m->train;
    int l = m->config.num_layers - 1;
    const struct layer_acts *a = &t->acts[l];
    struct pack_geometry g = t->geo;

    g.seqs.first = t->first;
    model_layer_attend(m, l, &g, a, s);
    model_train_select_rows(t, a->x, m->config.hidden_size, a->x_mid);
    model_train_select_rows(t, a->mixed, model_dims(m).mix[m->layers[l].mix], t->mixed_last);
    model_layer_mlp(m, l, t->n_targets, a, t->mixed_last, s, t->x_last);
}

/* Rows [from, from + rows) of the targets are in t->logits: what a row's softmax does not run over goes far down. */
static void model_train_keep_chunk(struct model *m, int from, int rows)
{
    struct model_train *t = m->train;
    int V = m->config.vocab_size;

    for (int i = 0; i < rows && t->kept; i++) {
        int n = t->n_kept[t->from[from + i]];
        const int32_t *ids = t->kept[t->from[from + i]];
        float *z = t->logits + (size_t)i * (size_t)V, *hold = n ? xmalloc((size_t)n * sizeof *hold) : NULL;

        for (int k = 0; k < n; k++)
            hold[k] = z[ids[k]];
        for (int v = 0; v < V && n; v++)
            z[v] = LOGIT_OUT;
        for (int k = 0; k < n; k++)
            z[ids[k]] = hold[k];
        free(hold);
    }
}

/* Log-probabilities and entropies of all targets, chunk by chunk. */
static void model_train_classify(struct model *m)
{
    struct model_train *t = m->train;
    struct model_dims n = model_dims(m);

    m->ops->rmsnorm_mt(t->n_targets, n.d, t->x_last, m->final_norm, n.plus, m->config.rms_norm_eps, t->h_last, t->rstd);
    for (int i = 0; i < t->n_targets; i += t->chunk) {
        int rows = t->n_targets - i < t->chunk ? t->n_targets - i : t->chunk;
        model_train_logits_chunk(m, i, rows);
        model_train_keep_chunk(m, i, rows);
        m->ops->classifier_mt(rows, n.V, t->logits, t->inv_temp, t->target + i, t->lse + i, t->logp + i,
                              t->entropy + i);
    }
}

int model_forward(struct model *m, const struct train_batch *b, float *logp, float *entropy, struct err *e)
{
    struct model_train *t = m->train;

    if (model_train_check_batch(m, m->dev ? dev_train_limits(m->dev) : t ? &t->limits : NULL, b, e) < 0)
        return -1;
    if (m->dev)
        return dev_forward(m, b, logp, entropy, e);
    model_train_set_batch(m, b);
    struct forward_scratch s = {t->h, t->act, t->attn, t->attn_per_thread};
    int given = b->cu_seqlens[b->n_seq];

    model_embed(m, t->geo.T, t->tokens, t->acts[0].x);
    for (int i = 0; i + 1 < m->config.num_layers; i++)
        model_layer_forward(m, i, &t->geo, &t->acts[i], &s, t->acts[i + 1].x);
    if (t->n_targets) {
        model_train_last_layer(m, &s);
        model_train_classify(m);
    }
    memset(logp, 0, (size_t)given * sizeof *logp);
    if (entropy)
        memset(entropy, 0, (size_t)given * sizeof *entropy);
    for (int i = 0; i < t->n_targets; i++) {
        logp[t->from[i]] = t->logp[i];
        if (entropy)
            entropy[t->from[i]] = t->entropy[i];
    }
    t->ready = true;
    return 0;
}

/* ---- backward ---- */

/* grad of w (out, in) += dy^T x for dy (T, out) and x (T, in). */
static void model_train_weight_gradient(struct model *m, const float *w, int T, int out, int in, const float *dy,
                                        int ld_dy, const float *x)
{
    struct model_train *t = m->train;

    m->ops->pack_nn_mt(x, in, in, T, t->packed);
    m->ops->gemm_mt(out, in, T, dy, ld_dy, true, t->packed, model_grad_of(m, w), in, GEMM_ADD);
}

/* Gradients of the classifier, chunk by chunk. dlogp, dentropy: of each row; the latter may be NULL. */
static void model_train_classify_backward(struct model *m, const float *dlogp, const float *dentropy)
{
    struct model_train *t = m->train;
    struct model_dims n = model_dims(m);
    size_t d = (size_t)n.d;

    for (int i = 0; i < t->n_targets; i++) {
        t->dlogp[i] = dlogp[t->from[i]];
        t->dentropy[i] = dentropy ? dentropy[t->from[i]] : 0;
    }
    for (int i = 0; i < t->n_targets; i += t->chunk) {
        int rows = t->n_targets - i < t->chunk ? t->n_targets - i : t->chunk;
        if (t->n_targets > t->chunk) {
            model_train_logits_chunk(m, i, rows);
            model_train_keep_chunk(m, i, rows);
        }
        m->ops->classifier_backward_mt(rows, n.V, t->logits, t->inv_temp, t->target + i, t->lse + i, t->entropy + i,
                                       t->dlogp + i, dentropy ? t->dentropy + i : NULL);
        m->ops->gemm_mt(rows, n.d, n.V, t->logits, n.V, false, model_packs(m, PACK_BACKWARD)->head,
                        t->dh_last + (size_t)i * d, n.d, GEMM_SET);
        model_train_weight_gradient(m, m->lm_head, rows, n.V, n.d, t->logits, n.V, t->h_last + (size_t)i * d);
    }
    memset(t->dx, 0, (size_t)t->n_targets * d * sizeof *t->dx);
    m->ops->rmsnorm_backward_mt(t->n_targets, n.d, t->x_last, m->final_norm, n.plus, t->rstd, t->dh_last, t->dx,
                                model_grad_of(m, m->final_norm));
}

/* dx (rows, d) goes from behind the layer to behind its mixer. mixed (rows, mix); dmixed (rows, mix) is its gradient.
 * */
static void model_train_mlp_backward(struct model *m, int layer, int T, const float *mixed)
{
    struct model_train *t = m->train;
    const struct model_layer *w = &m->layers[layer];
    const struct layer_packs *p = &model_packs(m, PACK_BACKWARD)->layers[layer];
    const struct layer_acts *a = &t->acts[layer];
    struct model_dims n = model_dims(m);

    int mix = n.mix[w->mix];
    float *dact = t->act; /* overwritten element by element by the activation itself */
    m->ops->gemm_mt(T, n.f, n.d, t->dx, n.d, false, p->down, dact, n.f, GEMM_SET);
    m->ops->swiglu_backward_mt(T, n.f, a->gate_up, dact, a->gate_up, t->act);
    model_train_weight_gradient(m, w->down, T, n.d, n.f, t->dx, n.d, t->act);
    m->ops->rmsnorm_apply_mt(T, n.d, a->x_mid, w->norm2, n.plus, a->rstd2, t->h);
    model_train_weight_gradient(m, w->gate_up, T, 2 * n.f, n.d, a->gate_up, 2 * n.f, t->h);
    m->ops->gemm_mt(T, n.d, 2 * n.f, a->gate_up, 2 * n.f, false, p->gate_up, t->dh, n.d, GEMM_SET);
    m->ops->rmsnorm_backward_mt(T, n.d, a->x_mid, w->norm2, n.plus, a->rstd2, t->dh, t->dx, model_grad_of(m, w->norm2));
    m->ops->gemm_mt(T, mix, n.d, t->dx, n.d, false, p->o, t->dmixed, mix, GEMM_SET);
    model_train_weight_gradient(m, w->o, T, n.d, mix, t->dx, n.d, mixed);
}

/* Gradients of one layer's mixer and its projections. */
static void model_train_mixer_backward(struct model *m, int layer, const struct pack_geometry *g)
{
    struct model_train *t = m->train;
    const struct model_layer *w = &m->layers[layer];
    const struct layer_acts *a = &t->acts[layer];
    const struct mixer_back b = {t->dmixed, t->din, t->dpre, t->attn, t->attn_per_thread};
    const struct ops *op = m->ops;
    struct model_dims n = model_dims(m);
    int T = g->T, in = n.in[w->mix];

    model_mixers[w->mix].backward(m, layer, g, a, &b);
    op->rmsnorm_apply_mt(T, n.d, a->x, w->norm1, n.plus, a->rstd1, t->h);
    model_train_weight_gradient(m, w->qkv, T, in, n.d, t->din, in, t->h);
    op->gemm_mt(T, n.d, in, t->din, in, false, model_packs(m, PACK_BACKWARD)->layers[layer].qkv, t->dh, n.d, GEMM_SET);
    op->rmsnorm_backward_mt(T, n.d, a->x, w->norm1, n.plus, a->rstd1, t->dh, t->dx, model_grad_of(m, w->norm1));
}

/* Threads share the columns, so each element of the gradient is summed over tokens in order. */
static void model_train_embed_backward(struct model *m)
{
    const struct model_train *t = m->train;
    size_t d = (size_t)m->config.hidden_size;
    float *g = model_grad_of(m, m->embed);

#pragma omp parallel for schedule(static)
    for (size_t c = 0; c < d; c += 16)
        for (int i = 0; i < t->geo.T; i++) {
            float *to = g + (size_t)t->tokens[i] * d;
            const float *from = t->dx + (size_t)i * d;
            for (size_t j = c; j < c + 16 && j < d; j++)
                to[j] += from[j];
        }
}

int model_backward(struct model *m, const float *dlogp, const float *dentropy, struct err *e)
{
    struct model_train *t = m->train;

    if (m->dev)
        return dev_backward(m, dlogp, dentropy, e);
    if (!t || !t->ready)
        return err_set(e, ERR_BUG, "model_backward without a model_forward before it");
    t->ready = false;
    if (!t->n_targets)
        return 0;
    struct pack_geometry g = t->geo;
    int last = m->config.num_layers - 1;

    model_train_classify_backward(m, dlogp, dentropy);
    model_train_mlp_backward(m, last, t->n_targets, t->mixed_last);
    model_train_spread_rows(t, t->dx, m->config.hidden_size);
    model_train_spread_rows(t, t->dmixed, model_dims(m).mix[m->layers[last].mix]);
    g.seqs.first = t->first;
    model_train_mixer_backward(m, last, &g);
    for (int i = last - 1; i >= 0; i--) {
        model_train_mlp_backward(m, i, g.T, t->acts[i].mixed);
        model_train_mixer_backward(m, i, &t->geo);
    }
    model_train_embed_backward(m);
    return 0;
}

void model_zero_grads(struct model *m)
{
    if (m->dev)
        dev_zero_grads(m->dev);
    else if (m->grads)
        memset(m->grads, 0, m->n_params * sizeof *m->grads);
}

int model_logits(struct model *m, const int32_t *tokens, int T, float *ret_logits, struct err *e)
{
    struct model_dims n = model_dims(m);
    int32_t cu[2] = {0, T}, *pos;
    size_t per = model_mix_scratch(m, T), rows = (size_t)T;
    struct layer_acts a;
    float *slab, *at;

    if (T < 1)
        return err_set(e, ERR_INPUT, "no tokens");
    for (int i = 0; i < T; i++)
        if (tokens[i] < 0 || tokens[i] >= n.V)
            return err_set(e, ERR_INPUT, "token %d at position %d is outside the vocabulary of %d", tokens[i], i, n.V);
    if (m->dev)
        return dev_logits(m, tokens, T, ret_logits, e);
    slab = slab_alloc(model_acts_floats(m, T, false) + rows * (size_t)(2 * n.d + n.f) + per *
                      (size_t)omp_get_max_threads(), e,
                      "activations");
    if (!slab)
        return -1;
    at = slab + model_acts_floats(m, T, false);
    float *x = at, *h = x + rows * (size_t)n.d, *act = h + rows * (size_t)n.d;
    struct forward_scratch s = {h, act, act + rows * (size_t)n.f, per};
    pos = xmalloc(rows * sizeof *pos);
    for (int i = 0; i < T; i++)
        pos[i] = i;
    float *rope = model_rope_table(&m->config, T);
    struct pack_geometry g = {.T = T, .seqs = {1, cu, NULL, NULL}, .pos = pos, .rope = rope};
    model_embed(m, T, tokens, x);
    for (int i = 0; i < m->config.num_layers; i++) {
        layer_acts_place(&a, &n, m->layers[i].mix, T, slab);
        memcpy(a.x, x, rows * (size_t)n.d * sizeof *x);
        model_layer_forward(m, i, &g, &a, &s, x);
    }
    m->ops->rmsnorm_mt(T, n.d, x, m->final_norm, n.plus, m->config.rms_norm_eps, h, NULL);
    m->ops->gemm_mt(T, n.V, n.d, h, n.d, false, model_packs(m, PACK_FORWARD)->head, ret_logits, n.V, GEMM_SET);
    free(rope);
    free(pos);
    slab_free(slab);
    return 0;
}
