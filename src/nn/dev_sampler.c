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
#include "nn/buffer_plan.h"

#define STEPS 4                /* tokens between two looks of the host */
#define MAX_ROWS 512           /* rows where the caller gives no limit */
#define PREFILL_TOKENS 8192
#define MAX_GRAPHS 64

struct dev_sampler_row {
    struct dev_asked *asked;
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
    struct dev_sampler_row *rows;
    int n_rows;
    int *free_slots, n_free;
    struct dev_asked *waits;   /* the request whose sample 'index' waits for a slot; NULL: ask for one */
    int index;
    struct sample_choice choice; /* of the rows that run */
    int done;
    uint64_t drawn;
    double last_report;
    /* device */
    char *slab, *cache_k, *cache_v;
    float *states;             /* of delta layers: (slots, layers, v_heads, k_dim, v_dim) */
    char *pasts;               /* (slots, layers, taps - 1, conv) */
    size_t state, past;        /* elements of one slot and layer */
    void *mixed;
    char *acts_at;             /* activations of prefill or of a step, one layer at a time */
    void *h, *act, *logits;
    int32_t *ints;             /* prefill: tokens pos seq slot (copies), cu, tiles */
    int32_t *token, *pos, *slot, *out_token;
    float *out_logp, *rope;
    struct nn_step_layer *layer; /* (layers) on the device; NULL: layers run one by one */
    uint64_t *seed;
    int ld_logits;
    struct { int rows; void *graph; } graph[MAX_GRAPHS];
    int n_graphs;
    uint32_t *kept, *host_kept; /* with 'keep': (STEPS, slots, words) bits of the ids that could be drawn */
    int words;
    int32_t *host_ints, *host_token;
    float *host_logp;
};

/* ---- memory ---- */

/* Integers that a step's arguments need. */
static size_t dev_sampler_ints_of(const struct gen *s) { return 8 * (size_t)s->prefill + 4 * (size_t)s->slots + 64; }

/* Adds the sampler's buffers to the plan. */
static void dev_sampler_add_items(struct gen *s, struct buffer_plan *p)
{
    const struct dev_model *g = s->g;
    const struct model_dims *n = &g->dims;
    size_t e = dtype_size(g->dt), B = (size_t)s->slots, T = (size_t)(s->prefill > s->slots ? s->prefill : s->slots);
    size_t linear = (size_t)s->m->config.n_linear, layers = (size_t)s->m->config.num_layers - linear, acts = 0;
    size_t kv = layers * B * (size_t)s->max_len * (size_t)n->kv * e;

    s->ld_logits = (n->V + 7) / 8 * 8;
    plan_add(p, "keys", kv, 0, 0, &s->cache_k);
    plan_add(p, "values", kv, 0, 0, &s->cache_v);
    if (linear) {
        s->state = (size_t)n->mix[MIX_DELTA] * (size_t)n->delta.k_dim;
        s->past = (size_t)(n->taps - 1) * (size_t)n->conv;
        plan_add(p, "states of delta layers", linear * B * s->state * sizeof(float), 0, 0, &s->states);
        plan_add(p, NULL, linear * B * s->past * e, 0, 0, &s->pasts);
    }
    if (s->m->config.output_gate)
        plan_add(p, "gated attention", T * (size_t)n->widest_mix * e, 0, 0, &s->mixed);
    for (int i = 0; i < s->m->config.num_layers; i++) {
        size_t one = layer_kind_of(s->m, i)->acts_bytes(n, g->dt, (int)T);
        acts = one > acts ? one : acts;
    }
    plan_add(p, "a layer's activations", acts, 0, 0, &s->acts_at);
    plan_add(p, "normed input", T * (size_t)n->d * e, 0, 0, &s->h);
    plan_add(p, "mlp activation", T * (size_t)n->f * e, 0, 0, &s->act);
    plan_add(p, "logits", B * (size_t)s->ld_logits * e, 0, 0, &s->logits);
    plan_add(p, "tables", dev_sampler_ints_of(s) * sizeof(int32_t), 0, 0, &s->ints);
    plan_add(p, NULL, B * sizeof(int32_t), 0, 0, &s->token);
    plan_add(p, NULL, B * sizeof(int32_t), 0, 0, &s->pos);
    plan_add(p, NULL, B * sizeof(int32_t), 0, 0, &s->slot);
    plan_add(p, NULL, B * sizeof(uint64_t), 0, 0, &s->seed);
    plan_add(p, NULL, 2 * STEPS * B * sizeof(int32_t), 0, 0, &s->out_token); /* log-probs behind: one copy takes both */
    s->words = s->j->o->keep ? (s->m->n_ids + 31) / 32 : 0;
    plan_add(p, "kept sets", STEPS * B * (size_t)s->words * sizeof *s->kept, 0, 0, &s->kept);
    plan_add(p, NULL, (size_t)s->m->config.num_layers * sizeof *s->layer, 0, 0, &s->layer);
    plan_add(p, "rotations", (size_t)s->max_len * (size_t)n->rot * sizeof(float), 0, 0, &s->rope);
    plan_layout(p);
}

/* The keys or values of a layer in the cache. */
static void *dev_sampler_cache_of(const struct gen *s, char *cache, int layer)
{
    return dev_tensor_at(s->g, cache, (size_t)layer * (size_t)s->slots * (size_t)s->max_len * (size_t)s->g->dims.kv);
}

/* What a fused step reads. $MUSACODER_NN_STEP=layers: layers run one by one, to compare. */
static void dev_sampler_place_layers(struct gen *s)
{
    const char *own = getenv("MUSACODER_NN_STEP");
    int L = s->m->config.num_layers;
    struct nn_step_layer *x = xcalloc((size_t)L, sizeof *x);
    bool plain = (!own || strcmp(own, "layers")) && !s->m->config.output_gate &&
                 s->m->config.rotary_dim == s->m->config.head_dim;

    for (int i = 0; i < L; i++) {
        const struct dev_weights *w = &s->g->layer[i];
        plain = plain && layer_kind_of(s->m, i)->plain;
        x[i] = (struct nn_step_layer){w->norm1, w->qkv, w->bias, w->q_norm, w->k_norm, w->o, w->norm2, w->gate_up,
                                      w->down, dev_sampler_cache_of(s, s->cache_k, i),
                                          dev_sampler_cache_of(s, s->cache_v, i)};
    }
    s->g->d->ops->upload(s->g->d->q, s->layer, x, (size_t)L * sizeof *x);
    if (!plain)
        s->layer = NULL;
    free(x);
}

/* As many slots as were asked for, or as fit. */
static int dev_sampler_allocate(struct gen *s, struct err *e)
{
    struct dev_model *g = s->g;
    struct nn_dev_info info;
    struct buffer_plan p;
    size_t budget;
    float *rope;

    g->d->ops->info(g->d->q, &info);
    budget = s->j->o->max_bytes ? s->j->o->max_bytes : info.free / 100 * 90;
    s->slots = s->j->o->max_batch ? s->j->o->max_batch : MAX_ROWS;
    s->slots = s->slots < s->j->total ? s->slots : s->j->total;
    for (;; s->slots = s->slots * 3 / 4) {
        p = (struct buffer_plan){.n = 0};
        dev_sampler_add_items(s, &p);
        if (p.bytes <= budget || s->slots <= 1)
            break;
    }
    if (plan_check(&p, 0, "others", budget, "lower the tokens per sample", e) < 0 ||
        !(s->slab = nn_device_alloc(g->d, p.bytes, "generation", e)))
        return -1;
    plan_place(&p, s->slab);
    s->out_logp = (float *)(s->out_token + STEPS * s->slots);
    dev_sampler_place_layers(s);
    rope = model_rope_table(&s->m->config, s->max_len);
    g->d->ops->upload(g->d->q, s->rope, rope, (size_t)s->max_len * (size_t)g->dims.rot * sizeof *rope);
    free(rope);
    s->rows = xcalloc((size_t)s->slots, sizeof *s->rows);
    s->free_slots = xcalloc((size_t)s->slots, sizeof *s->free_slots);
    s->host_ints = xcalloc(dev_sampler_ints_of(s), sizeof *s->host_ints);
    s->host_token = xcalloc(2 * STEPS * (size_t)s->slots, sizeof *s->host_token);
    s->host_logp = (float *)(s->host_token + STEPS * s->slots);
    s->host_kept = xcalloc(STEPS * (size_t)s->slots * (size_t)s->words + 1, sizeof *s->host_kept);
    for (int i = 0; i < s->slots; i++)
        s->free_slots[s->n_free++] = s->slots - 1 - i;
    return 0;
}

static void dev_sampler_free_graphs(struct gen *s)
{
    for (int i = 0; i < s->n_graphs; i++)
        s->g->d->ops->graph_free(s->g->d->q, s->graph[i].graph);
    s->n_graphs = 0;
}

/* What a run that ends early leaves: its caller hears of every sample. */
static void dev_sampler_tell_rest(struct gen *s)
{
    if (!s->j->o->more)
        return;
    for (int i = 0; i < s->n_rows; i++)
        if (s->rows[i].out)
            s->j->told(s->j->run, s->rows[i].asked, s->rows[i].out);
    for (int n = s->waits ? s->waits->q.n_samples : 0; s->index < n; s->index++)
        s->j->told(s->j->run, s->waits, &s->waits->samples[s->index]);
}

/* Reports what is unfinished and frees the sampler's memory here and on the device. */
static void dev_sampler_release(struct gen *s)
{
    dev_sampler_tell_rest(s);
    dev_sampler_free_graphs(s);
    nn_device_free(s->g->d, s->slab);
    free(s->rows);
    free(s->free_slots);
    free(s->host_ints);
    free(s->host_token);
    free(s->host_kept);
}

/* Every kind of layer has x in the first place, so that it is the same for all. */
static struct dev_acts dev_sampler_acts_for(struct gen *s, int layer, int rows)
{
    struct dev_acts a;

    layer_kind_of(s->m, layer)->acts_place(&a, &s->g->dims, s->g->dt, rows, s->acts_at);
    return a;
}

/* Where a layer keeps what it knows of each slot. */
static void dev_sampler_set_state(const struct gen *s, int layer, struct dev_step *p)
{
    const struct dev_model *g = s->g;
    size_t i = (size_t)s->m->layers[layer].ordinal, linear = (size_t)s->m->config.n_linear;
    size_t kv = (size_t)s->slots * (size_t)s->max_len * (size_t)g->dims.kv;

    if (s->m->layers[layer].mix == MIX_DELTA) {
        p->state = s->states + i * s->state;
        p->past = dev_tensor_at(g, s->pasts, i * s->past);
        p->state_stride = linear * s->state;
        p->past_stride = linear * s->past;
    } else {
        p->cache_k = dev_tensor_at(g, s->cache_k, i * kv);
        p->cache_v = dev_tensor_at(g, s->cache_v, i * kv);
    }
}

/* ---- prefill ---- */

struct packed {
    int T, n_seq, n_tiles, copies;
    int32_t *tokens, *pos, *seq, *slot, *cu, *tiles; /* slot (copies, T) */
};

/* Rows [from, n_rows) are new. Their prompts without the last token, once a request; every copy is a slot to fill. */
static struct packed dev_sampler_pack_prompts(struct gen *s, int from)
{
    struct packed p = {.copies = 0};
    int32_t *at = s->host_ints;
    int most = 1, up;

    for (int i = from, run = 0; i < s->n_rows; i++) {
        run = i > from && s->rows[i].asked == s->rows[i - 1].asked ? run + 1 : 1;
        most = run > most ? run : most;
        if (run == 1 && s->rows[i].pos > 0) {
            p.T += s->rows[i].pos;
            p.n_seq++;
        }
    }
    up = dev_round_rows(p.T, s->prefill) - p.T; /* a sequence more, which no slot keeps */
    p.copies = most;
    p.T += up;
    p.n_seq += up > 0;
    p.tokens = at, p.pos = p.tokens + p.T, p.seq = p.pos + p.T, p.cu = p.seq + p.T, p.tiles = p.cu + p.n_seq + 1;
    p.T = 0, p.n_seq = 0;
    p.cu[0] = 0;
    for (int i = from; i < s->n_rows; i++) {
        const struct dev_sampler_row *r = &s->rows[i];
        const struct sample_request *q = &r->asked->q;
        if ((i > from && r->asked == s->rows[i - 1].asked) || r->pos == 0)
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
        p.pos[p.T] = t % s->max_len; /* the table of rotations ends there */
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
static void dev_sampler_slots_of_copy(const struct gen *s, int from, int copy, int rows, int32_t *slot)
{
    int T = 0;

    for (int i = from; i < s->n_rows;) {
        int n = 1, len = s->rows[i].pos;
        while (i + n < s->n_rows && s->rows[i + n].asked == s->rows[i].asked)
            n++;
        for (int t = 0; t < len; t++)
            slot[T++] = copy < n ? s->rows[i + copy].slot : -1;
        i += n;
    }
    while (T < rows)
        slot[T++] = -1;
}

/* slot (n_seq) of the first sample of each prompt; -1 for the sequence that fills up. */
static void dev_sampler_slots_of_sequences(const struct gen *s, int from, int n_seq, int32_t *slot)
{
    int n = 0;

    for (int i = from; i < s->n_rows; i++)
        if ((i == from || s->rows[i].asked != s->rows[i - 1].asked) && s->rows[i].pos > 0)
            slot[n++] = s->rows[i].slot;
    while (n < n_seq)
        slot[n++] = -1;
}

/* The states of a slot's gated delta layers. */
static float *dev_sampler_states_of(const struct gen *s, int slot)
{
    return s->states + (size_t)slot * (size_t)s->m->config.n_linear * s->state;
}

/* Where the slot's past of the convolutions lies on the device. */
static void *dev_sampler_pasts_of(const struct gen *s, int slot)
{
    return dev_tensor_at(s->g, s->pasts, (size_t)slot * (size_t)s->m->config.n_linear * s->past);
}

/* Delta layers start from nothing where a prompt of one token is not prefilled. */
static void dev_sampler_clear_states(struct gen *s, int from)
{
    const struct nn_dev_ops *op = s->g->d->ops;
    size_t linear = (size_t)s->m->config.n_linear;

    for (int i = from; i < s->n_rows && linear; i++)
        if (s->rows[i].pos == 0) {
            op->zero(s->g->d->q, dev_sampler_states_of(s, s->rows[i].slot), linear * s->state * sizeof(float));
            op->zero(s->g->d->q, dev_sampler_pasts_of(s, s->rows[i].slot), linear * s->past * dtype_size(s->g->dt));
        }
}

/* From a prompt's first sample to the others. */
static void dev_sampler_copy_states(struct gen *s, int from)
{
    const struct nn_dev_ops *op = s->g->d->ops;
    size_t linear = (size_t)s->m->config.n_linear;

    for (int i = from, first = from; i < s->n_rows && linear; i++) {
        if (s->rows[i].asked != s->rows[first].asked)
            first = i;
        if (i == first || s->rows[i].pos == 0)
            continue;
        int to = s->rows[i].slot, of = s->rows[first].slot;
        op->copy(s->g->d->q, dev_sampler_states_of(s, to), dev_sampler_states_of(s, of),
                 linear * s->state * sizeof(float));
        op->copy(s->g->d->q, dev_sampler_pasts_of(s, to), dev_sampler_pasts_of(s, of),
                 linear * s->past * dtype_size(s->g->dt));
    }
}

/* Runs the prompts of the rows from 'from' on and fills their caches. */
static int dev_sampler_prefill(struct gen *s, int from, struct err *e)
{
    struct dev_model *g = s->g;
    const struct nn_dev_ops *op = g->d->ops;
    const struct model_dims *n = &g->dims;
    struct packed p = dev_sampler_pack_prompts(s, from);
    int32_t *slots, *dev[6];
    struct dev_acts a;
    struct dev_step step;
    size_t tables = (size_t)(p.slot - s->host_ints), copies = (size_t)p.copies, T = (size_t)p.T;

    dev_sampler_clear_states(s, from);
    if (p.T == 0)
        return 0;
    int32_t *dslot = nn_device_alloc(g->d, (copies * T + (size_t)p.n_seq) * sizeof *dslot, "slots of prompts", e);
    if (!dslot)
        return -1;
    slots = xmalloc((copies * T + (size_t)p.n_seq) * sizeof *slots);
    dev_sampler_slots_of_sequences(s, from, p.n_seq, slots + copies * T);
    for (int c = 0; c < p.copies; c++)
        dev_sampler_slots_of_copy(s, from, c, p.T, slots + (size_t)c * (size_t)p.T);
    op->upload(g->d->q, s->ints, s->host_ints, tables * sizeof *s->ints);
    op->upload(g->d->q, dslot, slots, (copies * T + (size_t)p.n_seq) * sizeof *slots);
    int32_t *host[6] = {p.tokens, p.pos, p.seq, p.cu, p.tiles, p.slot};
    for (int i = 0; i < 6; i++)
        dev[i] = s->ints + (host[i] - s->host_ints);
    a = dev_sampler_acts_for(s, 0, p.T);
    step = (struct dev_step){.T = p.T, .pos = dev[1], .rope = s->rope, .h = s->h, .act = s->act, .mixed = s->mixed,
                             .slot = dslot, .seq_slot = dslot + copies * T, .max_len = s->max_len};
    step.attn = (struct nn_attn){.T = p.T, .heads = n->heads, .kv_heads = n->kv_heads, .dim = n->dim,
                                 .ld_q = n->q + n->kv, .ld_k = n->q + n->kv, .ld_v = n->qkv, .ld_o = n->q,
                                 .n_seq = p.n_seq, .n_tiles = p.n_tiles, .cu = dev[3], .pos = dev[1], .seq = dev[2],
                                 .tiles = dev[4]};
    op->embed(g->d->q, g->dt, p.T, n->d, dev[0], g->embed, a.x);
    for (int l = 0; l < s->m->config.num_layers; l++) {
        a = dev_sampler_acts_for(s, l, p.T);
        dev_sampler_set_state(s, l, &step);
        layer_kind_of(s->m, l)->forward(g, l, &step, &a, a.x);
        for (int c = 1; c < p.copies && s->m->layers[l].mix == MIX_ATTENTION; c++)
            op->kv_store(g->d->q, g->dt, p.T, n->kv, s->max_len, dslot + (size_t)c * (size_t)p.T, step.pos,
                         dev_tensor_at(g, a.qk, (size_t)n->q), n->q + n->kv, dev_tensor_at(g, a.qkv, (size_t)n->v_at),
                         n->qkv, step.cache_k, step.cache_v);
    }
    dev_sampler_copy_states(s, from);
    nn_device_free(g->d, dslot);
    free(slots);
    return 0;
}

/* ---- decoding ---- */

/* The whole step as one operator, for a few rows. */
static bool dev_sampler_fused_step(struct gen *s, int B)
{
    struct dev_model *g = s->g;
    const struct model_dims *n = &g->dims;
    struct nn_step x = {.B = B, .layers = s->m->config.num_layers, .d = n->d, .f = n->f, .heads = n->heads,
                        .kv_heads = n->kv_heads, .dim = n->dim, .V = n->V, .ld_logits = s->ld_logits,
                        .max_len = s->max_len, .eps = g->eps, .plus = n->plus, .layer = s->layer, .embed = g->embed,
                        .final_norm = g->final_norm, .head = g->head, .rope = s->rope, .token = s->token, .pos = s->pos,
                        .slot = s->slot, .logits = s->logits};

    return s->layer && B <= NN_STEP_ROWS && g->d->ops->step(g->d->q, g->dt, &x);
}

/* Queues one token of B rows, layer by layer, up to the last hidden state. */
static void dev_sampler_layered_step(struct gen *s, int B)
{
    struct dev_model *g = s->g;
    const struct nn_dev_ops *op = g->d->ops;
    const struct model_dims *n = &g->dims;
    struct dev_acts a = dev_sampler_acts_for(s, 0, B);
    struct dev_step step = {.T = B, .pos = s->pos, .rope = s->rope, .h = s->h, .act = s->act, .mixed = s->mixed,
                            .slot = s->slot, .max_len = s->max_len};

    op->embed(g->d->q, g->dt, B, n->d, s->token, g->embed, a.x);
    for (int l = 0; l < s->m->config.num_layers; l++) {
        a = dev_sampler_acts_for(s, l, B);
        dev_sampler_set_state(s, l, &step);
        layer_kind_of(s->m, l)->decode(g, l, &step, &a, a.x);
    }
    op->rmsnorm(g->d->q, g->dt, B, n->d, NULL, a.x, g->final_norm, n->plus, g->eps, s->h, NULL);
    dev_linear(g, B, n->V, n->d, s->h, n->d, g->head, NULL, s->logits, s->ld_logits);
}

/* Queues token k of this round for B rows: layers, logits and the draw. */
static void dev_sampler_queue_step(struct gen *s, int B, int k)
{
    struct dev_model *g = s->g;
    struct nn_sample c = {.B = B, .V = g->dims.V, .ids = s->m->n_ids, .ld = s->ld_logits, .logits = s->logits,
                          .temperature = s->choice.temperature, .top_p = s->choice.top_p, .seed = s->seed,
                          .pos = s->pos, .token = s->token, .out_token = s->out_token + (size_t)k * (size_t)s->slots,
                          .out_logp = s->out_logp + (size_t)k * (size_t)s->slots,
                          .kept = s->words ? s->kept + (size_t)k * (size_t)(s->slots * s->words) : NULL};

    if (!dev_sampler_fused_step(s, B))
        dev_sampler_layered_step(s, B);
    g->d->ops->sample(g->d->q, g->dt, &c);
}

/* A few sizes of batch, so that a few graphs serve all. */
static int dev_sampler_round_rows(const struct gen *s, int n)
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

/* Runs STEPS tokens of B rows, as a recorded graph where the device has graphs. */
static void dev_sampler_run_steps(struct gen *s, int B)
{
    struct nn_queue *q = s->g->d->q;
    const struct nn_dev_ops *op = s->g->d->ops;
    int i = 0;

    while (i < s->n_graphs && s->graph[i].rows != B)
        i++;
    if (i == s->n_graphs) {
        bool recording = i < MAX_GRAPHS && op->graph_begin(q) == 0;
        for (int k = 0; k < STEPS; k++)
            dev_sampler_queue_step(s, B, k);
        if (!recording)
            return;
        void *graph = op->graph_end(q);
        if (!graph) /* why is in the queue, and told when the host waits for it */
            return;
        s->graph[i].rows = B;
        s->graph[i].graph = graph;
        s->n_graphs++;
    }
    op->graph_launch(q, s->graph[i].graph);
}

/* Uploads the rows' tokens, positions and seeds; rows above the live ones are empty. */
static void dev_sampler_upload_rows(struct gen *s, int B)
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

/* Ends a row's sample and frees its slot. */
static void dev_sampler_finish_row(struct gen *s, struct dev_sampler_row *r, enum finish why)
{
    struct sample *o = r->out;

    o->finish = why;
    s->free_slots[s->n_free++] = r->slot;
    r->out = NULL; /* marks the row as over */
    s->done++;
    s->j->told(s->j->run, r->asked, o);
}

static bool dev_sampler_is_stop(const struct dev_job *j, int32_t token)
{
    for (int i = 0; i < j->n_stop; i++)
        if (j->stop[i] == token)
            return true;
    return false;
}

/* Appends a drawn token to its sample, and notes whether that has ended. */
static void dev_sampler_take_token(struct gen *s, struct dev_sampler_row *r, int32_t token, float logp)
{
    struct sample *o = r->out;
    bool wanted;

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
    wanted = !s->j->o->on_token || s->j->o->on_token(s->j->o->ctx, o);
    if (!wanted || dev_sampler_is_stop(s->j, token))
        dev_sampler_finish_row(s, r, FINISH_STOP);
    else if (o->n == r->max_new)
        dev_sampler_finish_row(s, r, FINISH_LENGTH);
}

/* Before the token is taken: what could be drawn in its place. */
static void dev_sampler_keep_set(const struct gen *s, struct sample *o, const uint32_t *words)
{
    int had = o->n ? o->kept_to[o->n - 1] : 0, n = 0;

    for (int w = 0; w < s->words; w++)
        n += __builtin_popcount(words[w]);
    sample_keep_room(o, had + n);
    for (int w = 0; w < s->words; w++)
        for (uint32_t bits = words[w]; bits; bits &= bits - 1)
            o->kept[had++] = w * 32 + __builtin_ctz(bits);
    o->kept_to[o->n] = had;
}

/* Returns whether rows ended. */
static bool dev_sampler_take_tokens(struct gen *s)
{
    int k = 0, had = s->n_rows;

    for (int i = 0; i < s->n_rows; i++)
        for (int t = 0; t < STEPS && s->rows[i].out; t++) {
            if (s->words)
                dev_sampler_keep_set(s, s->rows[i].out, s->host_kept + (size_t)(t * s->slots + i) * (size_t)s->words);
            dev_sampler_take_token(s, &s->rows[i], s->host_token[t * s->slots + i], s->host_logp[t * s->slots + i]);
        }
    for (int i = 0; i < s->n_rows; i++)
        if (s->rows[i].out)
            s->rows[k++] = s->rows[i];
    s->n_rows = k;
    return k != had;
}

/* Is there a sample that can have a slot? A step has one temperature and top-p: others wait until the rows have
 * ended. */
static bool dev_sampler_next_request(struct gen *s, bool idle)
{
    const struct sample_choice *c;

    if (!s->waits) {
        s->waits = s->j->next(s->j->run, idle);
        s->index = 0;
    }
    if (!s->waits)
        return false;
    c = &s->waits->choice;
    if (c->temperature == s->choice.temperature && c->top_p == s->choice.top_p)
        return true;
    if (s->n_rows)
        return false;
    dev_sampler_free_graphs(s);
    s->choice = *c;
    return true;
}

/* Makes a row of the waiting request's next sample. */
static void dev_sampler_add_row(struct gen *s)
{
    struct dev_asked *a = s->waits;
    const struct sample_request *q = &a->q;
    struct rng r;

    rng_seed(&r, q->seed, (uint64_t)s->index);
    s->rows[s->n_rows++] = (struct dev_sampler_row){.asked = a, .out = &a->samples[s->index],
                                                    .slot = s->free_slots[--s->n_free],
                                                    .max_new = a->max_new, .token = q->prompt[q->n_prompt - 1],
                                                    .pos = q->n_prompt - 1, .seed = rng_u64(&r)};
    if (++s->index == q->n_samples)
        s->waits = NULL;
}

/* Waiting samples into free slots, a prefill's worth of prompts at a time. *any is set where there were some. */
static int dev_sampler_admit(struct gen *s, bool *any, struct err *e)
{
    while (s->n_free && dev_sampler_next_request(s, false)) {
        int from = s->n_rows, T = 0;
        const struct dev_asked *last = NULL;
        while (s->n_free && dev_sampler_next_request(s, false)) {
            int len = s->waits == last ? 0 : s->waits->q.n_prompt - 1;
            if (last && T + len > s->prefill)
                break;
            T += len;
            last = s->waits;
            dev_sampler_add_row(s);
        }
        *any = true;
        if (dev_sampler_prefill(s, from, e) < 0)
            return -1;
    }
    return 0;
}

/* Calls the caller's progress, ten times a second at most and at the end. */
static void dev_sampler_tell(struct gen *s, bool last)
{
    double now = now_s();

    if (s->j->o->progress && (last || now - s->last_report >= 0.1)) {
        s->last_report = now;
        s->j->o->progress(s->j->o->ctx, s->drawn, s->done, s->j->total);
    }
}

/* Admits prompts and draws until all samples are done. */
static int dev_sampler_loop(struct gen *s, struct err *e)
{
    const struct nn_dev_ops *op = s->g->d->ops;
    bool changed = true;

    while (s->n_rows || dev_sampler_next_request(s, true)) {
        int B;
        size_t bytes = 2 * STEPS * (size_t)s->slots * sizeof(int32_t);

        if (stop_requested())
            return err_set(e, ERR_STOP, "stopped before all samples were drawn");
        if ((s->n_rows == 0 || s->n_free > s->slots / 8) && dev_sampler_admit(s, &changed, e) < 0)
            return -1;
        B = dev_sampler_round_rows(s, s->n_rows);
        if (changed)
            dev_sampler_upload_rows(s, B);
        dev_sampler_run_steps(s, B);
        op->download(s->g->d->q, s->host_token, s->out_token, bytes);
        if (s->words)
            op->download(s->g->d->q, s->host_kept, s->kept,
                         STEPS * (size_t)s->slots * (size_t)s->words * sizeof *s->kept);
        if (nn_device_sync(s->g->d, e) < 0)
            return -1;
        changed = dev_sampler_take_tokens(s);
        dev_sampler_tell(s, false);
    }
    dev_sampler_tell(s, true);
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
    rc = dev_sampler_allocate(&s, e);
    if (rc == 0)
        rc = dev_sampler_loop(&s, e);
    dev_sampler_release(&s);
    return rc;
}
