/* sampler.c - life of one sample: wait, share a prefilled prompt, decode in a row of the batch, finish, make room.
 *
 * Rows of one request stay neighbours, so that attention reads a shared prompt once for several of them. */
#include "nn/sampler.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "nn/choose.h"
#include "nn/kv_cache.h"

#define PREFILL_TOKENS 4096 /* prompts prefilled together */
#define MAX_STOP 16

struct prefix {
    struct kv_cache kv; // owns its slab
    float *logits;      // (V) after the last token of the prompt
    int users;          // samples that still need it, waiting ones included
};

struct row {
    struct kv_cache kv; // place in the slab of rows, given back when the sample ends
    int slot;
    struct prefix *prefix;
    struct sample *out;
    struct rng rng;
    int max_new, cap;
    int32_t last; // token to feed
};

struct run {
    struct model *m;
    struct sampler_options o;
    struct choice_rule rule;
    const struct sample_request *reqs;
    int n_reqs;
    struct sample *samples;
    int *first;             // index of the first sample of each request
    int total, done;
    uint64_t drawn;
    double last_report;
    int32_t stop[MAX_STOP];
    int n_stop;
    int next_req, next_index; // who is admitted next
    struct prefix **prefixes; // of each request, NULL before prefill and after the last sample
    struct row *rows;
    int n_rows, max_batch, max_new, max_prompt;
    float *kv_slab;
    size_t kv_floats;       // per slot
    int *free_slots, n_free;
    // prefill
    int prefill_cap;
    float *prefill_slab;
    struct layer_acts acts;
    float *px, *ph, *pact, *pattn;
    size_t pattn_per;
    int32_t *pos, *ptok, *pcu;
    float *rope;
    // decode
    float *decode_slab;
    float *x, *h, *qkv, *qk, *att, *gate_up, *act, *logits, *attn, *scratch;
    size_t attn_per;
    int32_t *dpos;
    struct decode_row *drows;
    struct choice_candidate *cand;
    int32_t *chosen;
    float *chosen_logp;
};

void sample_free(struct sample *s)
{
    free(s->tokens);
    free(s->logp);
    s->tokens = NULL;
    s->logp = NULL;
}

void samples_free(struct sample *s, size_t n)
{
    for (size_t i = 0; s && i < n; i++)
        sample_free(&s[i]);
    free(s);
}

static int max_int(int a, int b) { return a > b ? a : b; }
static int min_int(int a, int b) { return a < b ? a : b; }

/* ---- set-up ---- */

static int request_max_new(const struct run *s, const struct sample_request *q)
{
    int n = q->max_new ? q->max_new : s->o.max_new;

    return min_int(n, s->m->config.max_positions - q->n_prompt);
}

static int check_requests(struct run *s, struct err *e)
{
    int V = s->m->config.vocab_size;

    for (int i = 0; i < s->n_reqs; i++) {
        const struct sample_request *q = &s->reqs[i];
        if (q->n_prompt < 1 || q->n_samples < 1)
            return err_set(e, ERR_INPUT, "request %d has %d prompt tokens and wants %d samples; both must be at least 1", i,
                           q->n_prompt, q->n_samples);
        if (s->o.max_prompt && q->n_prompt > s->o.max_prompt)
            return err_set(e, ERR_INPUT, "the prompt of request %d has %d tokens; the limit is %d", i, q->n_prompt,
                           s->o.max_prompt);
        if (request_max_new(s, q) < 1)
            return err_set(e, ERR_INPUT, "request %d: a prompt of %d tokens leaves no room; the model has %d positions, "
                           "max_new is %d", i, q->n_prompt, s->m->config.max_positions, q->max_new ? q->max_new : s->o.max_new);
        for (int t = 0; t < q->n_prompt; t++)
            if (q->prompt[t] < 0 || q->prompt[t] >= V)
                return err_set(e, ERR_INPUT, "request %d: token %d is outside the vocabulary of %d", i, q->prompt[t], V);
        s->max_new = max_int(s->max_new, request_max_new(s, q));
        s->max_prompt = max_int(s->max_prompt, q->n_prompt);
        s->total += q->n_samples;
    }
    return 0;
}

static int check_options(struct run *s, struct err *e)
{
    struct sampler_options *o = &s->o;

    if (!(o->temperature >= 0) || o->temperature > 1e6f)
        return err_set(e, ERR_INPUT, "temperature %g is out of range; 0 means greedy", (double)o->temperature);
    if (!(o->top_p >= 0 && o->top_p <= 1))
        return err_set(e, ERR_INPUT, "top-p %g is out of range; it must be above 0 and at most 1", (double)o->top_p);
    s->rule = (struct choice_rule){o->temperature, o->top_p > 0 ? o->top_p : 1, o->top_k};
    s->n_stop = min_int(o->n_stop ? o->n_stop : s->m->config.n_eos, MAX_STOP);
    memcpy(s->stop, o->n_stop ? o->stop_ids : s->m->config.eos, (size_t)s->n_stop * sizeof *s->stop);
    return 0;
}

static void make_samples(struct run *s)
{
    int k = 0;

    s->samples = xcalloc((size_t)s->total + 1, sizeof *s->samples);
    s->first = xcalloc((size_t)s->n_reqs + 1, sizeof *s->first);
    s->prefixes = xcalloc((size_t)s->n_reqs + 1, sizeof *s->prefixes);
    for (int i = 0; i < s->n_reqs; i++) {
        s->first[i] = k;
        for (int j = 0; j < s->reqs[i].n_samples; j++)
            s->samples[k++] = (struct sample){.request = i, .index = j, .finish = FINISH_CANCELLED};
    }
}

static int alloc_rows(struct run *s, struct err *e)
{
    size_t budget = s->o.max_bytes ? s->o.max_bytes : memory_available() / 2, per_row;

    s->kv_floats = kv_cache_floats(s->m, s->max_new);
    per_row = (s->kv_floats + kv_cache_floats(s->m, s->max_prompt)) * sizeof(float);
    s->max_batch = min_int(s->o.max_batch ? s->o.max_batch : 64, s->total);
    while (s->max_batch > 1 && per_row * (size_t)s->max_batch > budget)
        s->max_batch--;
    if (!(s->kv_slab = slab_alloc(s->kv_floats * (size_t)s->max_batch, e, "the KV cache")))
        return -1;
    s->rows = xcalloc((size_t)s->max_batch, sizeof *s->rows);
    s->free_slots = xcalloc((size_t)s->max_batch, sizeof *s->free_slots);
    for (int i = 0; i < s->max_batch; i++)
        s->free_slots[s->n_free++] = s->max_batch - 1 - i;
    return 0;
}

static int alloc_prefill(struct run *s, struct err *e)
{
    struct model_dims n = model_dims(s->m);
    struct attn_shape shape = model_attn_shape(&n);
    size_t T;

    s->prefill_cap = max_int(s->max_prompt, PREFILL_TOKENS);
    T = (size_t)s->prefill_cap;
    s->pattn_per = s->m->ops->attn_scratch(&shape, s->max_prompt);
    s->prefill_slab = slab_alloc(layer_acts_floats(&n, s->prefill_cap) + T * (size_t)(2 * n.d + n.f) +
                                 s->pattn_per * (size_t)omp_get_max_threads(), e, "prefill");
    if (!s->prefill_slab)
        return -1;
    s->px = layer_acts_place(&s->acts, &n, s->prefill_cap, s->prefill_slab);
    s->ph = s->px + T * (size_t)n.d;
    s->pact = s->ph + T * (size_t)n.d;
    s->pattn = s->pact + T * (size_t)n.f;
    s->pos = xcalloc(T, sizeof *s->pos);
    s->ptok = xcalloc(T, sizeof *s->ptok);
    s->pcu = xcalloc((size_t)s->max_batch + 1, sizeof *s->pcu);
    s->rope = model_rope_table(&s->m->config, s->max_prompt + s->max_new);
    return 0;
}

static int alloc_decode(struct run *s, struct err *e)
{
    struct model_dims n = model_dims(s->m);
    size_t B = (size_t)s->max_batch, V = (size_t)n.V, d = (size_t)n.d;
    struct { float **p; size_t width; } parts[] = {
        {&s->x, d}, {&s->h, d}, {&s->qkv, (size_t)n.qkv}, {&s->qk, (size_t)(n.q + n.kv)}, {&s->att, (size_t)n.q},
        {&s->gate_up, 2 * (size_t)n.f}, {&s->act, (size_t)n.f}, {&s->logits, V}, {&s->scratch, V},
    };
    size_t floats = 0, n_parts = sizeof parts / sizeof parts[0];
    float *at;

    s->attn_per = decode_scratch(s->m, s->max_prompt, s->max_new);
    for (size_t i = 0; i < n_parts; i++)
        floats += B * parts[i].width + 16;
    at = s->decode_slab = slab_alloc(floats + s->attn_per * (size_t)omp_get_max_threads(), e, "decoding");
    if (!at)
        return -1;
    for (size_t i = 0; i < n_parts; i++) {
        *parts[i].p = at;
        at += (B * parts[i].width + 15) / 16 * 16;
    }
    s->attn = at;
    s->dpos = xcalloc(B, sizeof *s->dpos);
    s->drows = xcalloc(B, sizeof *s->drows);
    s->cand = xcalloc(B * V, sizeof *s->cand);
    s->chosen = xcalloc(B, sizeof *s->chosen);
    s->chosen_logp = xcalloc(B, sizeof *s->chosen_logp);
    return 0;
}

static void prefix_release(struct run *s, int request)
{
    struct prefix *p = s->prefixes[request];

    if (!p || --p->users > 0)
        return;
    slab_free(p->kv.slab);
    free(p->logits);
    free(p);
    s->prefixes[request] = NULL;
}

static void run_free(struct run *s)
{
    for (int i = 0; s->prefixes && i < s->n_reqs; i++)
        if (s->prefixes[i]) {
            s->prefixes[i]->users = 1;
            prefix_release(s, i);
        }
    slab_free(s->kv_slab);
    slab_free(s->prefill_slab);
    slab_free(s->decode_slab);
    free(s->prefixes);
    free(s->first);
    free(s->rows);
    free(s->free_slots);
    free(s->pos);
    free(s->ptok);
    free(s->pcu);
    free(s->rope);
    free(s->dpos);
    free(s->drows);
    free(s->cand);
    free(s->chosen);
    free(s->chosen_logp);
}

/* ---- prefill ---- */

/* Requests [from, to) lie packed in ptok/pcu/pos. */
static void prefill_layers(struct run *s, int from, int to)
{
    struct model *m = s->m;
    struct model_dims n = model_dims(m);
    struct pack_geometry g = {.T = s->pcu[to - from], .n_seq = to - from, .cu = s->pcu, .pos = s->pos, .rope = s->rope};
    struct forward_scratch f = {s->ph, s->pact, s->pattn, s->pattn_per};
    int ld = n.q + n.kv;

    model_embed(m, g.T, s->ptok, s->acts.x);
    for (int l = 0; l < m->config.num_layers; l++) {
        float *in = s->acts.x;
        model_layer_forward(m, l, &g, &s->acts, &f, s->px);
#pragma omp parallel for schedule(dynamic)
        for (int i = from; i < to; i++) {
            size_t at = (size_t)s->pcu[i - from];
            kv_fill(m, &s->prefixes[i]->kv, l, s->reqs[i].n_prompt, s->acts.qk + at * (size_t)ld + n.q, ld,
                    s->acts.qkv + at * (size_t)n.qkv + n.q + n.kv, n.qkv);
        }
        s->acts.x = s->px; // the output is the next input; the old input is free
        s->px = in;
    }
}

static void prefill_logits(struct run *s, int from, int to)
{
    struct model *m = s->m;
    size_t d = (size_t)m->config.hidden_size;

    for (int i = from; i < to; i++) {
        float *row = s->ph; // free by now
        m->ops->rmsnorm_mt(1, (int)d, s->acts.x + ((size_t)s->pcu[i - from + 1] - 1) * d, m->final_norm,
                           m->config.rms_norm_eps, row, NULL);
        m->ops->gemm_mt(1, m->config.vocab_size, (int)d, row, (int)d, false, model_packs(m, PACK_FORWARD)->head,
                        s->prefixes[i]->logits, m->config.vocab_size, GEMM_SET);
    }
}

/* Prefills the requests from 'from' on that fit together, at most as many as could start now. */
static int prefill(struct run *s, int from, struct err *e)
{
    int T = 0, to, want = s->n_free;

    for (to = from; to < s->n_reqs && want > 0 && (to == from || T + s->reqs[to].n_prompt <= s->prefill_cap); to++) {
        const struct sample_request *q = &s->reqs[to];
        struct prefix *p = xcalloc(1, sizeof *p);
        float *slab = slab_alloc(kv_cache_floats(s->m, q->n_prompt), e, "the KV cache of a prompt");
        if (!slab) {
            free(p);
            return -1;
        }
        kv_cache_place(&p->kv, q->n_prompt, slab);
        p->kv.n = q->n_prompt;
        p->logits = xmalloc((size_t)s->m->config.vocab_size * sizeof *p->logits);
        p->users = q->n_samples;
        s->prefixes[to] = p;
        for (int t = 0; t < q->n_prompt; t++) {
            s->ptok[T] = q->prompt[t];
            s->pos[T++] = t;
        }
        s->pcu[to - from + 1] = T;
        want -= q->n_samples;
    }
    prefill_layers(s, from, to);
    prefill_logits(s, from, to);
    return 0;
}

/* ---- rows ---- */

static void report(struct run *s, bool force)
{
    double now = now_s();

    if (!s->o.progress || (!force && now - s->last_report < 0.1))
        return;
    s->last_report = now;
    s->o.progress(s->o.ctx, s->drawn, s->done, s->total);
}

static void finish_row(struct run *s, struct row *r, enum finish why)
{
    r->out->finish = why;
    s->free_slots[s->n_free++] = r->slot;
    prefix_release(s, r->out->request);
    r->prefix = NULL; // marks the row as over
    s->done++;
    if (s->o.on_sample)
        s->o.on_sample(s->o.ctx, r->out);
}

static bool is_stop(const struct run *s, int32_t token)
{
    for (int i = 0; i < s->n_stop; i++)
        if (s->stop[i] == token)
            return true;
    return false;
}

static void take_token(struct run *s, struct row *r, int32_t token, float logp)
{
    struct sample *o = r->out;

    if (o->n == r->cap) {
        r->cap = min_int(r->cap ? 2 * r->cap : 64, r->max_new);
        o->tokens = xrealloc(o->tokens, (size_t)r->cap * sizeof *o->tokens);
        o->logp = xrealloc(o->logp, (size_t)r->cap * sizeof *o->logp);
    }
    o->tokens[o->n] = token;
    o->logp[o->n++] = logp;
    r->last = token;
    s->drawn++;
    if (s->o.on_token)
        s->o.on_token(s->o.ctx, o->request, o->index, token);
    if (is_stop(s, token))
        finish_row(s, r, FINISH_STOP);
    else if (o->n == r->max_new)
        finish_row(s, r, FINISH_LENGTH);
}

static void drop_finished(struct run *s)
{
    int k = 0;

    for (int i = 0; i < s->n_rows; i++)
        if (s->rows[i].prefix)
            s->rows[k++] = s->rows[i];
    s->n_rows = k;
}

static int choose_for(struct run *s, int i, const float *z, struct rng *r, float *logp)
{
    size_t V = (size_t)s->m->config.vocab_size, at = (size_t)i * V;

    return choose_token(s->m->ops, (int)V, z, &s->rule, r, s->scratch + at, s->cand + at, logp);
}

/* The next waiting sample gets a row and its first token. */
static void admit_one(struct run *s)
{
    int i = s->next_req;
    const struct sample_request *q = &s->reqs[i];
    struct row *r = &s->rows[s->n_rows++];
    float logp;
    int32_t token;

    *r = (struct row){.slot = s->free_slots[--s->n_free], .prefix = s->prefixes[i],
                      .out = &s->samples[s->first[i] + s->next_index], .max_new = request_max_new(s, q)};
    kv_cache_place(&r->kv, s->max_new, s->kv_slab + (size_t)r->slot * s->kv_floats);
    rng_seed(&r->rng, q->seed, (uint64_t)s->next_index);
    if (++s->next_index == q->n_samples) {
        s->next_index = 0;
        s->next_req++;
    }
    token = choose_for(s, 0, r->prefix->logits, &r->rng, &logp);
    take_token(s, r, token, logp);
}

static int admit(struct run *s, struct err *e)
{
    while (s->next_req < s->n_reqs && s->n_free > 0) {
        if (!s->prefixes[s->next_req] && prefill(s, s->next_req, e) < 0)
            return -1;
        while (s->next_req < s->n_reqs && s->n_free > 0 && s->n_rows < s->max_batch && s->prefixes[s->next_req])
            admit_one(s);
        drop_finished(s); // a first token may already be a stop
    }
    return 0;
}

/* ---- decode ---- */

static void decode_layer(struct run *s, int layer, int B)
{
    struct model *m = s->m;
    const struct ops *op = m->ops;
    const struct model_layer *w = &m->layers[layer];
    const struct layer_packs *p = &model_packs(m, PACK_FORWARD)->layers[layer];
    struct model_dims n = model_dims(m);
    double eps = m->config.rms_norm_eps;
    int ld = n.q + n.kv;

    op->rmsnorm_mt(B, n.d, s->x, w->norm1, eps, s->h, NULL);
    op->gemm_mt(B, n.qkv, n.d, s->h, n.d, false, p->qkv, s->qkv, n.qkv, GEMM_SET);
    op->qk_norm_rope_mt(B, n.heads, n.dim, s->qkv, n.qkv, w->q_norm, eps, s->dpos, s->rope, s->qk, ld, NULL);
    op->qk_norm_rope_mt(B, n.kv_heads, n.dim, s->qkv + n.q, n.qkv, w->k_norm, eps, s->dpos, s->rope, s->qk + n.q, ld, NULL);
    for (int i = 0; i < B; i++) {
        s->rows[i].kv.n--; // counted once per step, before the first layer
        kv_append(m, &s->rows[i].kv, layer, s->qk + (size_t)i * (size_t)ld + n.q,
                  s->qkv + (size_t)i * (size_t)n.qkv + n.q + n.kv);
        s->rows[i].kv.n++;
    }
    decode_attention(m, layer, B, s->drows, s->qk, ld, s->att, s->attn, s->attn_per);
    op->gemm_mt(B, n.d, n.q, s->att, n.q, false, p->o, s->x, n.d, GEMM_ADD);
    op->rmsnorm_mt(B, n.d, s->x, w->norm2, eps, s->h, NULL);
    op->gemm_mt(B, 2 * n.f, n.d, s->h, n.d, false, p->gate_up, s->gate_up, 2 * n.f, GEMM_SET);
    op->swiglu_mt(B, n.f, s->gate_up, s->act);
    op->gemm_mt(B, n.d, n.f, s->act, n.f, false, p->down, s->x, n.d, GEMM_ADD);
}

static void decode_step(struct run *s)
{
    struct model *m = s->m;
    int B = s->n_rows, d = m->config.hidden_size, V = m->config.vocab_size;

    for (int i = 0; i < B; i++) {
        struct row *r = &s->rows[i];
        memcpy(s->x + (size_t)i * (size_t)d, m->embed + (size_t)r->last * (size_t)d, (size_t)d * sizeof *s->x);
        s->dpos[i] = r->prefix->kv.n + r->kv.n;
        r->kv.n++;
        s->drows[i] = (struct decode_row){&r->prefix->kv, &r->kv};
    }
    for (int l = 0; l < m->config.num_layers; l++)
        decode_layer(s, l, B);
    m->ops->rmsnorm_mt(B, d, s->x, m->final_norm, m->config.rms_norm_eps, s->h, NULL);
    m->ops->gemm_mt(B, V, d, s->h, d, false, model_packs(m, PACK_FORWARD)->head, s->logits, V, GEMM_SET);
#pragma omp parallel for schedule(static)
    for (int i = 0; i < B; i++)
        s->chosen[i] = choose_for(s, i, s->logits + (size_t)i * (size_t)V, &s->rows[i].rng, &s->chosen_logp[i]);
    for (int i = 0; i < B; i++)
        take_token(s, &s->rows[i], s->chosen[i], s->chosen_logp[i]);
    drop_finished(s);
}

static int run_all(struct run *s, struct err *e)
{
    while (s->done < s->total) {
        if (stop_requested())
            return err_set(e, ERR_STOP, "stopped after %d of %d samples", s->done, s->total);
        if (admit(s, e) < 0)
            return -1;
        if (s->n_rows)
            decode_step(s);
        report(s, false);
    }
    report(s, true);
    return 0;
}

int sampler_run(struct model *m, const struct sampler_options *o, const struct sample_request *reqs, int n_reqs,
                struct sample **ret, size_t *ret_n, struct err *e)
{
    struct run s = {.m = m, .o = *o, .reqs = reqs, .n_reqs = n_reqs};
    int rc;

    if (check_options(&s, e) < 0 || check_requests(&s, e) < 0)
        return -1;
    make_samples(&s);
    rc = s.total == 0 ? 0
         : alloc_rows(&s, e) < 0 || alloc_prefill(&s, e) < 0 || alloc_decode(&s, e) < 0 ? -1 : run_all(&s, e);
    run_free(&s);
    if (rc < 0 && !stop_requested()) {
        samples_free(s.samples, (size_t)s.total);
        return -1;
    }
    *ret = s.samples;
    *ret_n = (size_t)s.total;
    return rc;
}
