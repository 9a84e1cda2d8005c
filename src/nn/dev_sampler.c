/* dev_sampler.c - generation on a device, on the very weights that training holds: continuous batching over contiguous
 * slots of keys and values.
 *
 * A sample waits, gets a slot, and its prompt but for the last token is prefilled, packed with others; samples of one
 * request share that pass. Then it is a row of the batch: a step feeds the last token and draws the next one. STEPS
 * steps are one graph, recorded once for each size of batch; the host reads tokens after each graph, ends rows that
 * stopped, and fills their slots. A row's randomness is a function of its seed and position alone. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "nn/dev_model.h"
#include "nn/plan.h"

#define STEPS 4                /* tokens between two looks of the host */
#define MAX_ROWS 512           /* rows where the caller gives no limit */
#define PREFILL_TOKENS 8192
#define MAX_GRAPHS 64

struct row {
    struct sample *out;
    int slot, cap, max_new;
    int32_t token, pos;
    uint64_t seed;
};

struct gen {
    struct model *m;
    struct dev_model *g;
    const struct dev_job *j;
    int slots, max_len, prefill;
    struct row *rows;
    int n_rows;
    int *free_slots, n_free;
    int request, index;        // the next sample that waits
    int done;
    uint64_t drawn;
    double last_report;
    // device
    char *slab, *cache_k, *cache_v;
    char *acts_at;             // activations of prefill or of a step, one layer at a time
    void *h, *act, *logits;
    int32_t *ints;             // prefill: tokens pos seq slot (copies), cu, tiles
    int32_t *token, *pos, *slot, *out_token;
    float *out_logp, *rope;
    uint64_t *seed;
    int ld_logits;
    struct { int rows; void *graph; } graph[MAX_GRAPHS];
    int n_graphs;
    int32_t *host_ints, *host_token;
    float *host_logp;
};

/* ---- memory ---- */

static size_t ints_of(const struct gen *s) { return 8 * (size_t)s->prefill + 4 * (size_t)s->slots + 64; }

static void add_items(struct gen *s, struct plan *p)
{
    const struct dev_model *g = s->g;
    const struct model_dims *n = &g->dims;
    size_t e = dtype_size(g->dt), B = (size_t)s->slots, T = (size_t)(s->prefill > s->slots ? s->prefill : s->slots);
    size_t kv = (size_t)s->m->config.num_layers * B * (size_t)s->max_len * (size_t)n->kv * e;

    s->ld_logits = (n->V + 7) / 8 * 8;
    plan_add(p, "keys", kv, 0, 0, &s->cache_k);
    plan_add(p, "values", kv, 0, 0, &s->cache_v);
    plan_add(p, "a layer's activations", layer_kind_of(s->m, 0)->acts_bytes(n, g->dt, (int)T), 0, 0, &s->acts_at);
    plan_add(p, "normed input", T * (size_t)n->d * e, 0, 0, &s->h);
    plan_add(p, "mlp activation", T * (size_t)n->f * e, 0, 0, &s->act);
    plan_add(p, "logits", B * (size_t)s->ld_logits * e, 0, 0, &s->logits);
    plan_add(p, "tables", ints_of(s) * sizeof(int32_t), 0, 0, &s->ints);
    plan_add(p, NULL, B * sizeof(int32_t), 0, 0, &s->token);
    plan_add(p, NULL, B * sizeof(int32_t), 0, 0, &s->pos);
    plan_add(p, NULL, B * sizeof(int32_t), 0, 0, &s->slot);
    plan_add(p, NULL, B * sizeof(uint64_t), 0, 0, &s->seed);
    plan_add(p, NULL, STEPS * B * sizeof(int32_t), 0, 0, &s->out_token);
    plan_add(p, NULL, STEPS * B * sizeof(float), 0, 0, &s->out_logp);
    plan_add(p, "rotations", (size_t)s->max_len * (size_t)n->dim * sizeof(float), 0, 0, &s->rope);
    plan_layout(p);
}

/* As many slots as were asked for, or as fit. */
static int allocate(struct gen *s, struct err *e)
{
    struct dev_model *g = s->g;
    struct nn_dev_info info;
    struct plan p;
    size_t budget;
    float *rope;

    g->d->ops->info(g->d->q, &info);
    budget = s->j->o->max_bytes ? s->j->o->max_bytes : info.free / 100 * 90;
    s->slots = s->j->o->max_batch ? s->j->o->max_batch : MAX_ROWS;
    s->slots = s->slots < s->j->total ? s->slots : s->j->total;
    for (;; s->slots = s->slots * 3 / 4) {
        p = (struct plan){.n = 0};
        add_items(s, &p);
        if (p.bytes <= budget || s->slots <= 1)
            break;
    }
    if (plan_check(&p, 0, "others", budget, "lower the tokens per sample", e) < 0 ||
        !(s->slab = nn_device_alloc(g->d, p.bytes, "generation", e)))
        return -1;
    plan_place(&p, s->slab);
    rope = model_rope_table(&s->m->config, s->max_len);
    g->d->ops->upload(g->d->q, s->rope, rope, (size_t)s->max_len * (size_t)g->dims.dim * sizeof *rope);
    free(rope);
    s->rows = xcalloc((size_t)s->slots, sizeof *s->rows);
    s->free_slots = xcalloc((size_t)s->slots, sizeof *s->free_slots);
    s->host_ints = xcalloc(ints_of(s), sizeof *s->host_ints);
    s->host_token = xcalloc(STEPS * (size_t)s->slots, sizeof *s->host_token);
    s->host_logp = xcalloc(STEPS * (size_t)s->slots, sizeof *s->host_logp);
    for (int i = 0; i < s->slots; i++)
        s->free_slots[s->n_free++] = s->slots - 1 - i;
    return 0;
}

static void release(struct gen *s)
{
    for (int i = 0; i < s->n_graphs; i++)
        s->g->d->ops->graph_free(s->g->d->q, s->graph[i].graph);
    nn_device_free(s->g->d, s->slab);
    free(s->rows);
    free(s->free_slots);
    free(s->host_ints);
    free(s->host_token);
    free(s->host_logp);
}

static struct dev_acts acts_for(struct gen *s, int rows)
{
    struct dev_acts a;

    layer_kind_of(s->m, 0)->acts_place(&a, &s->g->dims, s->g->dt, rows, s->acts_at);
    return a;
}

static void *cache_of(const struct gen *s, char *cache, int layer)
{
    return dev_at(s->g, cache, (size_t)layer * (size_t)s->slots * (size_t)s->max_len * (size_t)s->g->dims.kv);
}

/* ---- prefill ---- */

struct packed {
    int T, n_seq, n_tiles, copies;
    int32_t *tokens, *pos, *seq, *slot, *cu, *tiles; // slot (copies, T)
};

/* Rows [from, n_rows) are new. Their prompts without the last token, once a request; every copy is a slot to fill. */
static struct packed pack_prompts(struct gen *s, int from)
{
    struct packed p = {.copies = 0};
    int32_t *at = s->host_ints;
    int most = 1, up;

    for (int i = from, run = 0; i < s->n_rows; i++) {
        run = i > from && s->rows[i].out->request == s->rows[i - 1].out->request ? run + 1 : 1;
        most = run > most ? run : most;
        if (run == 1 && s->rows[i].pos > 0) {
            p.T += s->rows[i].pos;
            p.n_seq++;
        }
    }
    up = dev_round_rows(p.T, s->prefill) - p.T; // a sequence more, which no slot keeps
    p.copies = most;
    p.T += up;
    p.n_seq += up > 0;
    p.tokens = at, p.pos = p.tokens + p.T, p.seq = p.pos + p.T, p.cu = p.seq + p.T, p.tiles = p.cu + p.n_seq + 1;
    p.T = 0, p.n_seq = 0;
    p.cu[0] = 0;
    for (int i = from; i < s->n_rows; i++) {
        const struct row *r = &s->rows[i];
        const struct sample_request *q = &s->j->reqs[r->out->request];
        if ((i > from && r->out->request == s->rows[i - 1].out->request) || r->pos == 0)
            continue;
        for (int t = 0; t < r->pos; t++, p.T++) {
            p.tokens[p.T] = q->prompt[t];
            p.pos[p.T] = t;
            p.seq[p.T] = p.n_seq;
        }
        p.cu[++p.n_seq] = p.T;
    }
    for (int t = 0; t < up; t++, p.T++) {
        p.tokens[p.T] = 0;
        p.pos[p.T] = t;
        p.seq[p.T] = p.n_seq;
    }
    if (up)
        p.cu[++p.n_seq] = p.T;
    p.n_tiles = dev_count_tiles(p.n_seq, p.cu);
    dev_fill_tiles(p.n_seq, p.cu, p.tiles);
    p.slot = p.tiles + 2 * p.n_tiles;
    return p;
}

/* slot (T) of the copy-th sample of each request among the new rows; -1 where there is none. */
static void slots_of_copy(const struct gen *s, int from, int copy, int rows, int32_t *slot)
{
    int T = 0;

    for (int i = from; i < s->n_rows;) {
        int n = 1, len = s->rows[i].pos;
        while (i + n < s->n_rows && s->rows[i + n].out->request == s->rows[i].out->request)
            n++;
        for (int t = 0; t < len; t++)
            slot[T++] = copy < n ? s->rows[i + copy].slot : -1;
        i += n;
    }
    while (T < rows)
        slot[T++] = -1;
}

static void prefill(struct gen *s, int from)
{
    struct dev_model *g = s->g;
    const struct nn_dev_ops *op = g->d->ops;
    const struct model_dims *n = &g->dims;
    struct packed p = pack_prompts(s, from);
    int32_t *slots, *dev[6];
    struct dev_acts a;
    struct dev_step step;
    size_t tables = (size_t)(p.slot - s->host_ints);

    if (p.T == 0)
        return;
    slots = xmalloc((size_t)p.copies * (size_t)p.T * sizeof *slots);
    for (int c = 0; c < p.copies; c++)
        slots_of_copy(s, from, c, p.T, slots + (size_t)c * (size_t)p.T);
    op->upload(g->d->q, s->ints, s->host_ints, tables * sizeof *s->ints);
    int32_t *dslot = op->alloc(g->d->q, (size_t)p.copies * (size_t)p.T * sizeof *slots);
    op->upload(g->d->q, dslot, slots, (size_t)p.copies * (size_t)p.T * sizeof *slots);
    int32_t *host[6] = {p.tokens, p.pos, p.seq, p.cu, p.tiles, p.slot};
    for (int i = 0; i < 6; i++)
        dev[i] = s->ints + (host[i] - s->host_ints);
    a = acts_for(s, p.T);
    step = (struct dev_step){.T = p.T, .pos = dev[1], .rope = s->rope, .h = s->h, .act = s->act, .slot = dslot,
                             .max_len = s->max_len};
    step.attn = (struct nn_attn){.T = p.T, .heads = n->heads, .kv_heads = n->kv_heads, .dim = n->dim,
                                 .ld_q = n->q + n->kv, .ld_k = n->q + n->kv, .ld_v = n->qkv, .ld_o = n->q,
                                 .n_seq = p.n_seq, .n_tiles = p.n_tiles, .cu = dev[3], .pos = dev[1], .seq = dev[2],
                                 .tiles = dev[4]};
    op->embed(g->d->q, g->dt, p.T, n->d, dev[0], g->embed, a.x);
    for (int l = 0; l < s->m->config.num_layers; l++) {
        step.cache_k = cache_of(s, s->cache_k, l);
        step.cache_v = cache_of(s, s->cache_v, l);
        layer_kind_of(s->m, l)->forward(g, l, &step, &a, a.x);
        for (int c = 1; c < p.copies; c++)
            op->kv_store(g->d->q, g->dt, p.T, n->kv, s->max_len, dslot + (size_t)c * (size_t)p.T, step.pos,
                         dev_at(g, a.qk, (size_t)n->q), n->q + n->kv, dev_at(g, a.qkv, (size_t)(n->q + n->kv)), n->qkv,
                         step.cache_k, step.cache_v);
    }
    op->release(g->d->q, dslot);
    free(slots);
}

/* ---- decoding ---- */

static void queue_step(struct gen *s, int B, int k)
{
    struct dev_model *g = s->g;
    const struct nn_dev_ops *op = g->d->ops;
    const struct model_dims *n = &g->dims;
    struct dev_acts a = acts_for(s, B);
    struct dev_step step = {.T = B, .pos = s->pos, .rope = s->rope, .h = s->h, .act = s->act, .slot = s->slot,
                            .max_len = s->max_len};
    struct nn_sample c = {.B = B, .V = n->V, .ld = s->ld_logits, .logits = s->logits,
                          .temperature = s->j->o->temperature, .top_p = s->j->top_p, .seed = s->seed, .pos = s->pos,
                          .token = s->token, .out_token = s->out_token + (size_t)k * (size_t)s->slots,
                          .out_logp = s->out_logp + (size_t)k * (size_t)s->slots};

    op->embed(g->d->q, g->dt, B, n->d, s->token, g->embed, a.x);
    for (int l = 0; l < s->m->config.num_layers; l++) {
        step.cache_k = cache_of(s, s->cache_k, l);
        step.cache_v = cache_of(s, s->cache_v, l);
        layer_kind_of(s->m, l)->decode(g, l, &step, &a, a.x);
    }
    op->rmsnorm(g->d->q, g->dt, B, n->d, NULL, a.x, g->final_norm, g->eps, s->h, NULL);
    dev_linear(g, B, n->V, n->d, s->h, n->d, g->head, NULL, s->logits, s->ld_logits);
    op->sample(g->d->q, g->dt, &c);
}

/* A few sizes of batch, so that a few graphs serve all. */
static int round_rows(const struct gen *s, int n)
{
    int b = 1;

    if (n > 64)
        b = (n + 63) / 64 * 64;
    else if (n > 16)
        b = (n + 15) / 16 * 16;
    else
        while (b < n)
            b *= 2;
    return b < s->slots ? b : s->slots;
}

static void run_steps(struct gen *s, int B)
{
    struct nn_queue *q = s->g->d->q;
    const struct nn_dev_ops *op = s->g->d->ops;
    int i = 0;

    while (i < s->n_graphs && s->graph[i].rows != B)
        i++;
    if (i == s->n_graphs) {
        bool recording = i < MAX_GRAPHS && op->graph_begin(q) == 0;
        for (int k = 0; k < STEPS; k++)
            queue_step(s, B, k);
        if (!recording)
            return;
        s->graph[i].rows = B;
        s->graph[i].graph = op->graph_end(q);
        s->n_graphs++;
    }
    op->graph_launch(q, s->graph[i].graph);
}

static void upload_rows(struct gen *s, int B)
{
    struct nn_queue *q = s->g->d->q;
    const struct nn_dev_ops *op = s->g->d->ops;
    size_t n = (size_t)B;
    int32_t *x = s->host_ints;
    uint64_t *seed = xcalloc(n, sizeof *seed);

    for (int i = 0; i < B; i++) {
        bool live = i < s->n_rows;
        x[i] = live ? s->rows[i].token : 0;
        x[B + i] = live ? s->rows[i].pos : 0;
        x[2 * B + i] = live ? s->rows[i].slot : -1;
        seed[i] = live ? s->rows[i].seed : 0;
    }
    op->upload(q, s->token, x, n * sizeof *x);
    op->upload(q, s->pos, x + B, n * sizeof *x);
    op->upload(q, s->slot, x + 2 * B, n * sizeof *x);
    op->upload(q, s->seed, seed, n * sizeof *seed);
    free(seed);
}

/* ---- rows ---- */

static void finish_row(struct gen *s, struct row *r, enum finish why)
{
    struct sample *o = r->out;

    o->finish = why;
    s->free_slots[s->n_free++] = r->slot;
    r->out = NULL; // marks the row as over
    s->done++;
    if (s->j->o->on_sample)
        s->j->o->on_sample(s->j->o->ctx, o);
}

static bool is_stop(const struct dev_job *j, int32_t token)
{
    for (int i = 0; i < j->n_stop; i++)
        if (j->stop[i] == token)
            return true;
    return false;
}

static void take_token(struct gen *s, struct row *r, int32_t token, float logp)
{
    struct sample *o = r->out;

    if (o->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 64;
        o->tokens = xrealloc(o->tokens, (size_t)r->cap * sizeof *o->tokens);
        o->logp = xrealloc(o->logp, (size_t)r->cap * sizeof *o->logp);
    }
    o->tokens[o->n] = token;
    o->logp[o->n++] = logp;
    r->token = token;
    r->pos++;
    s->drawn++;
    if (s->j->o->on_token)
        s->j->o->on_token(s->j->o->ctx, o->request, o->index, token);
    if (is_stop(s->j, token))
        finish_row(s, r, FINISH_STOP);
    else if (o->n == r->max_new)
        finish_row(s, r, FINISH_LENGTH);
}

/* Returns whether rows ended. */
static bool take_tokens(struct gen *s)
{
    int k = 0, had = s->n_rows;

    for (int i = 0; i < s->n_rows; i++)
        for (int t = 0; t < STEPS && s->rows[i].out; t++)
            take_token(s, &s->rows[i], s->host_token[t * s->slots + i], s->host_logp[t * s->slots + i]);
    for (int i = 0; i < s->n_rows; i++)
        if (s->rows[i].out)
            s->rows[k++] = s->rows[i];
    s->n_rows = k;
    return k != had;
}

static void add_row(struct gen *s)
{
    const struct sample_request *q = &s->j->reqs[s->request];
    int room = s->m->config.max_positions - q->n_prompt, want = q->max_new ? q->max_new : s->j->o->max_new;
    struct rng r;

    rng_seed(&r, q->seed, (uint64_t)s->index);
    s->rows[s->n_rows++] = (struct row){.out = &s->j->samples[s->j->first[s->request] + s->index],
                                        .slot = s->free_slots[--s->n_free], .max_new = want < room ? want : room,
                                        .token = q->prompt[q->n_prompt - 1], .pos = q->n_prompt - 1,
                                        .seed = rng_u64(&r)};
    if (++s->index == q->n_samples) {
        s->index = 0;
        s->request++;
    }
}

/* Waiting samples into free slots, a prefill's worth of prompts at a time. Returns whether there were any. */
static bool admit(struct gen *s)
{
    bool any = false;

    while (s->n_free && s->request < s->j->n_reqs) {
        int from = s->n_rows, T = 0, last = -1;
        while (s->n_free && s->request < s->j->n_reqs) {
            int len = s->request == last ? 0 : s->j->reqs[s->request].n_prompt - 1;
            if (last >= 0 && T + len > s->prefill)
                break;
            T += len;
            last = s->request;
            add_row(s);
        }
        prefill(s, from);
        any = true;
    }
    return any;
}

static void tell(struct gen *s, bool last)
{
    double now = now_s();

    if (s->j->o->progress && (last || now - s->last_report >= 0.1)) {
        s->last_report = now;
        s->j->o->progress(s->j->o->ctx, s->drawn, s->done, s->j->total);
    }
}

static int loop(struct gen *s, struct err *e)
{
    const struct nn_dev_ops *op = s->g->d->ops;
    bool changed = true;

    while (s->n_rows || s->request < s->j->n_reqs) {
        int B;
        size_t bytes = STEPS * (size_t)s->slots * sizeof(int32_t);

        if (stop_requested())
            return err_set(e, ERR_STOP, "stopped before all samples were drawn");
        if (s->n_rows == 0 || s->n_free > s->slots / 8)
            changed |= admit(s);
        B = round_rows(s, s->n_rows);
        if (changed)
            upload_rows(s, B);
        run_steps(s, B);
        op->download(s->g->d->q, s->host_token, s->out_token, bytes);
        op->download(s->g->d->q, s->host_logp, s->out_logp, bytes);
        if (nn_device_sync(s->g->d, e) < 0)
            return -1;
        changed = take_tokens(s);
        tell(s, false);
    }
    tell(s, true);
    return 0;
}

int dev_sample(struct model *m, const struct dev_job *j, struct err *e)
{
    struct gen s = {.m = m, .g = m->dev, .j = j};
    int rc;

    s.max_len = j->max_prompt + j->max_new + STEPS;
    s.prefill = j->max_prompt > PREFILL_TOKENS ? j->max_prompt : PREFILL_TOKENS;
    if (j->all_prompts < s.prefill)
        s.prefill = j->all_prompts > j->max_prompt ? j->all_prompts : j->max_prompt;
    rc = allocate(&s, e);
    if (rc == 0)
        rc = loop(&s, e);
    release(&s);
    return rc;
}
