/* sampler.c - life of one sample: wait, share a prefilled prompt, decode in a row of a batch, finish, make room.
 *
 * Each thread is a worker with rows of its own, so that decoding needs no barrier: when other processes (compilers,
 * candidates under test) take a core away, only that worker waits. Work is handed out in units: a few samples of one
 * request. Rows of a unit stay neighbours, so that attention reads their prompt once for all of them. */
#include "nn/sampler.h"

#include <limits.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "nn/choose.h"
#include "nn/dev_model.h"
#include "nn/kv_cache.h"

#define PREFILL_TOKENS 1024 /* prompts prefilled together; a longer one goes alone */
#define UNIT 8              /* samples of a request that share a prefill */
#define MAX_STOP 16

struct prefix {
    struct kv_cache kv; /* owns its slab */
    float *logits;      /* (V) after the last token of the prompt */
    int users;          /* samples that still need it, waiting ones included */
};

struct unit {
    struct dev_asked *a;
    int from, to; /* samples [from, to) */
};

struct sampler_row {
    struct kv_cache kv; /* place in the worker's slab of rows, given back when the sample ends */
    int slot;
    struct prefix *prefix;
    struct dev_asked *asked;
    struct sample *out;
    struct rng rng;
    int max_new, cap;
    int32_t last; /* token to feed */
};

struct ended {
    struct dev_asked *a;
    struct sample *s;
};

/* What the workers share. Everything below 'lock' is guarded by it. */
struct sampler_run_state {
    struct model *m;
    struct sampler_options o;
    struct dev_asked *asked; /* (n_reqs); requests that came later are each on their own */
    int n_reqs, taken;      /* taken: how many were handed out, those that came later included */
    struct sample *samples;
    int total, n_workers, max_batch, max_new, max_prompt;
    int32_t stop[MAX_STOP];
    int n_stop;
    float *rope;

    pthread_mutex_t lock;
    pthread_cond_t moved;   /* a sample finished, or a worker ended */
    struct unit *units;
    int n_units, next_unit, cap_units, working, done;
    struct ended *finished; /* samples in order of finishing; the caller's thread tells about them */
    int n_finished, n_told, cap_finished;
    bool over;              /* no more requests will come */
    uint64_t drawn;
    double last_report;
    bool failed;
    struct err err;
};

struct ready_unit {
    struct unit u;
    struct prefix *prefix;
};

struct sampler_worker {
    struct sampler_run_state *run;
    struct model *m;
    struct sampler_row *rows;
    int n_rows, max_rows;
    float *kv_slab;
    size_t kv_floats;       /* per slot */
    int *free_slots, n_free;
    struct ready_unit *ready; /* (max_rows) prefilled, waiting for rows */
    int n_ready, at_ready;
    uint64_t drawn;         /* since it was last added to the run's */
    /* prefill */
    int prefill_cap;
    float *prefill_slab;
    struct layer_acts acts;
    float *px, *ph, *pact, *pattn;
    size_t pattn_per;
    int32_t *pos, *ptok, *pcu;
    struct prefix **pseq;   /* (max_rows) prefix of each packed prompt */
    /* decode */
    float *decode_slab;
    float *x, *h, *qkv, *qk, *att, *mixed, *gate_up, *act, *logits, *attn, *scratch;
    size_t attn_per;
    int32_t *dpos;
    struct decode_row *drows;
    float **past;           /* (max_rows) a delta layer's states of the rows */
    struct choice_candidate *cand;
    int32_t *chosen;
    float *chosen_logp;
};

static int sampler_max_int(int a, int b) { return a > b ? a : b; }
static int sampler_min_int(int a, int b) { return a < b ? a : b; }

/* ---- set-up ---- */

/* The most tokens that the request may draw within the model's positions. */
static int sampler_request_max_new(const struct model *m, const struct sampler_options *o,
                                   const struct sample_request *q)
{
    int n = q->max_new ? q->max_new : o->max_new;

    return sampler_min_int(n, m->config.max_positions - q->n_prompt);
}

/* ERR_INPUT for a temperature, top-p or top-k that cannot be. */
static int sampler_check_choice(const struct model *m, const struct sample_choice *c, struct err *e)
{
    if (!(c->temperature >= 0) || c->temperature > 1e6f)
        return err_set(e, ERR_INPUT, "temperature %g is out of range; 0 means greedy", (double)c->temperature);
    if (!(c->top_p >= 0 && c->top_p <= 1))
        return err_set(e, ERR_INPUT, "top-p %g is out of range; it must be above 0 and at most 1", (double)c->top_p);
    if (c->top_k < 0)
        return err_set(e, ERR_INPUT, "top-k %d is out of range; 0 means all", c->top_k);
    if (c->top_k && m->dev)
        return err_set(e, ERR_INPUT, "top-k is not offered on a device; use top-p");
    return 0;
}

static struct sample_choice sampler_choice_of(const struct sampler_options *o, const struct sample_request *q)
{
    return q->choice ? *q->choice : (struct sample_choice){o->temperature, o->top_p, o->top_k};
}

int sampler_check(const struct model *m, const struct sampler_options *o, const struct sample_request *q, struct err *e)
{
    struct sample_choice c = sampler_choice_of(o, q);
    int room = m->config.max_positions, V = m->config.vocab_size;

    if (q->n_prompt < 1 || q->n_samples < 1)
        return err_set(e, ERR_INPUT, "%d prompt tokens and %d samples; both must be at least 1", q->n_prompt,
                       q->n_samples);
    if (o->max_prompt && q->n_prompt > o->max_prompt)
        return err_set(e, ERR_INPUT, "the prompt has %d tokens; the limit is %d", q->n_prompt, o->max_prompt);
    if (sampler_request_max_new(m, o, q) < 1)
        return err_set(e, ERR_INPUT, "a prompt of %d tokens leaves no room; the model has %d positions, max_new is %d",
                       q->n_prompt, room, q->max_new ? q->max_new : o->max_new);
    if (o->more && sampler_request_max_new(m, o, q) > o->max_new)
        return err_set(e, ERR_INPUT, "%d new tokens are more than the limit of %d", q->max_new, o->max_new);
    for (int t = 0; t < q->n_prompt; t++)
        if (q->prompt[t] < 0 || q->prompt[t] >= V)
            return err_set(e, ERR_INPUT, "token %d is outside the vocabulary of %d", q->prompt[t], V);
    return sampler_check_choice(m, &c, e);
}

/* Fills *a from a checked request. */
static void sampler_lay_out(const struct sampler_run_state *s, struct dev_asked *a, const struct sample_request *q,
                            int number, struct sample *at)
{
    *a = (struct dev_asked){.q = *q, .choice = sampler_choice_of(&s->o, q), .samples = at, .left = q->n_samples,
                            .max_new = sampler_request_max_new(s->m, &s->o, q)};
    a->choice.top_p = a->choice.top_p > 0 ? a->choice.top_p : 1;
    for (int j = 0; j < q->n_samples; j++)
        at[j] = (struct sample){.request = number, .index = j, .finish = FINISH_CANCELLED, .user = q->user};
}

/* Checks all requests and finds the longest prompt and answer. */
static int sampler_check_requests(struct sampler_run_state *s, const struct sample_request *reqs, struct err *e)
{
    s->max_new = s->o.more ? s->o.max_new : 0;
    s->max_prompt = s->o.more ? s->o.max_prompt : 0;
    for (int i = 0; i < s->n_reqs; i++) {
        struct err why = ERR_INIT;
        if (sampler_check(s->m, &s->o, &reqs[i], &why) < 0)
            return err_set(e, why.kind, "request %d: %s", i, why.msg);
        s->max_new = sampler_max_int(s->max_new, sampler_request_max_new(s->m, &s->o, &reqs[i]));
        s->max_prompt = sampler_max_int(s->max_prompt, reqs[i].n_prompt);
        s->total += reqs[i].n_samples;
    }
    return 0;
}

/* ERR_INPUT for options that exclude each other or lie outside their range. */
static int sampler_check_options(struct sampler_run_state *s, struct err *e)
{
    struct sampler_options *o = &s->o;

    if (sampler_check_choice(s->m, &(struct sample_choice){o->temperature, o->top_p, o->top_k}, e) < 0)
        return -1;
    if (o->more && (o->max_new < 1 || o->max_prompt < 1 || s->n_reqs))
        return err_set(e, ERR_BUG, "a run that goes on needs max_prompt and max_new, and begins with no request");
    s->n_stop = sampler_min_int(o->n_stop ? o->n_stop : s->m->config.n_eos, MAX_STOP);
    memcpy(s->stop, o->n_stop ? o->stop_ids : s->m->config.eos, (size_t)s->n_stop * sizeof *s->stop);
    return 0;
}

/* Units of a request, behind those that wait. */
static void sampler_add_units(struct sampler_run_state *s, struct dev_asked *a, int size)
{
    if (s->next_unit == s->n_units)
        s->next_unit = s->n_units = 0;
    for (int j = 0; j < a->q.n_samples; j += size) {
        if (s->n_units == s->cap_units) {
            s->cap_units = 2 * s->cap_units + 64;
            s->units = xrealloc(s->units, (size_t)s->cap_units * sizeof *s->units);
        }
        s->units[s->n_units++] = (struct unit){a, j, sampler_min_int(j + size, a->q.n_samples)};
    }
}

/* Makes the run's samples and units of work, and settles how many workers share them. */
static void sampler_make_samples(struct sampler_run_state *s, const struct sample_request *reqs)
{
    int k = 0, size;

    s->n_workers = sampler_max_int(1, sampler_min_int(omp_get_max_threads(), s->total));
    size = sampler_min_int(UNIT, (s->total + s->n_workers - 1) / s->n_workers);
    s->samples = xcalloc((size_t)s->total + 1, sizeof *s->samples);
    s->asked = xcalloc((size_t)s->n_reqs + 1, sizeof *s->asked);
    s->over = !s->o.more;
    for (int i = 0; i < s->n_reqs; i++) {
        sampler_lay_out(s, &s->asked[i], &reqs[i], i, s->samples + k);
        k += reqs[i].n_samples;
        if (!s->m->dev)
            sampler_add_units(s, &s->asked[i], size);
    }
    s->n_workers = s->o.more ? 1 : sampler_min_int(s->n_workers, s->n_units);
}

/* The caller's next request, where the run goes on. NULL: none now, or s->over. A bad one is the caller's mistake: the
 * run fails. */
static struct dev_asked *sampler_one_more(struct sampler_run_state *s, bool idle)
{
    struct sample_request q = {0};
    struct dev_asked *a;
    int got = s->over ? -1 : s->o.more(s->o.ctx, idle, &q);

    if (got < 0 || (got == 0 && idle) || (got > 0 && sampler_check(s->m, &s->o, &q, &s->err) < 0)) {
        s->failed |= got > 0;
        s->over = true;
    }
    if (got <= 0 || s->over)
        return NULL;
    a = xcalloc(1, sizeof *a);
    sampler_lay_out(s, a, &q, s->taken++, xcalloc((size_t)q.n_samples, sizeof *a->samples));
    return a;
}

/* A sample of a run that goes on is not kept. */
static void sampler_told(struct sampler_run_state *s, struct dev_asked *a, struct sample *o)
{
    if (s->o.on_sample)
        s->o.on_sample(s->o.ctx, o);
    if (!s->o.more)
        return;
    sample_free(o);
    if (--a->left > 0)
        return;
    free(a->samples);
    free(a);
}

/* Rows of all workers together, within the budget for keys and values. */
static void sampler_plan_rows(struct sampler_run_state *s)
{
    size_t budget = s->o.max_bytes ? s->o.max_bytes : memory_available() / 2;
    size_t per_row = (kv_cache_floats(s->m, s->max_new) + kv_cache_floats(s->m, s->max_prompt)) * sizeof(float);

    s->max_batch = s->o.max_batch ? s->o.max_batch : 64 * s->n_workers;
    s->max_batch = s->o.more ? s->max_batch : sampler_min_int(s->max_batch, s->total);
    if (per_row * (size_t)s->max_batch > budget)
        s->max_batch = sampler_max_int(1, (int)(budget / per_row));
    s->n_workers = sampler_min_int(s->n_workers, s->max_batch);
}

/* Allocates a worker's rows and their caches. ERR_ENV: no memory. */
static int sampler_alloc_rows(struct sampler_worker *w, struct err *e)
{
    struct sampler_run_state *s = w->run;
    size_t n;

    w->max_rows = (s->max_batch + s->n_workers - 1) / s->n_workers;
    n = (size_t)w->max_rows;
    w->kv_floats = kv_cache_floats(w->m, s->max_new);
    if (!(w->kv_slab = slab_alloc(w->kv_floats * n, e, "the KV cache")))
        return -1;
    w->rows = xcalloc(n, sizeof *w->rows);
    w->ready = xcalloc(n, sizeof *w->ready);
    w->pseq = xcalloc(n, sizeof *w->pseq);
    w->free_slots = xcalloc(n, sizeof *w->free_slots);
    for (int i = 0; i < w->max_rows; i++)
        w->free_slots[w->n_free++] = w->max_rows - 1 - i;
    return 0;
}

/* Allocates what prompts need. */
static int sampler_alloc_prefill(struct sampler_worker *w, struct err *e)
{
    struct sampler_run_state *s = w->run;
    struct model_dims n = model_dims(w->m);
    size_t T, acts;

    w->prefill_cap = sampler_max_int(s->max_prompt, PREFILL_TOKENS);
    T = (size_t)w->prefill_cap;
    w->pattn_per = model_mix_scratch(w->m, s->max_prompt);
    acts = model_acts_floats(w->m, w->prefill_cap, false);
    w->prefill_slab = slab_alloc(acts + T * (size_t)(2 * n.d + n.f) +
                                 w->pattn_per * (size_t)omp_get_max_threads(), e, "prefill");
    if (!w->prefill_slab)
        return -1;
    w->px = w->prefill_slab + acts;
    w->ph = w->px + T * (size_t)n.d;
    w->pact = w->ph + T * (size_t)n.d;
    w->pattn = w->pact + T * (size_t)n.f;
    w->pos = xcalloc(T, sizeof *w->pos);
    w->ptok = xcalloc(T, sizeof *w->ptok);
    w->pcu = xcalloc((size_t)w->max_rows + 1, sizeof *w->pcu);
    return 0;
}

/* Allocates what one token of all rows needs. */
static int sampler_alloc_decode(struct sampler_worker *w, struct err *e)
{
    struct model_dims n = model_dims(w->m);
    size_t B = (size_t)w->max_rows, V = (size_t)n.V, d = (size_t)n.d;
    struct { float **p; size_t width; } parts[] = {
        {&w->x, d}, {&w->h, d}, {&w->qkv, (size_t)n.widest_in}, {&w->qk, (size_t)n.widest_pre}, {&w->att,
                                                                                                 (size_t)n.widest_mix},
        {&w->mixed, (size_t)n.widest_mix},
        {&w->gate_up, 2 * (size_t)n.f}, {&w->act, (size_t)n.f}, {&w->logits, V}, {&w->scratch, V},
    };
    size_t floats = 0, n_parts = sizeof parts / sizeof parts[0];
    float *at;

    w->attn_per = decode_scratch(w->m, w->run->max_prompt, w->run->max_new);
    for (size_t i = 0; i < n_parts; i++)
        floats += B * parts[i].width + 16;
    at = w->decode_slab = slab_alloc(floats + w->attn_per * (size_t)omp_get_max_threads(), e, "decoding");
    if (!at)
        return -1;
    for (size_t i = 0; i < n_parts; i++) {
        *parts[i].p = at;
        at += (B * parts[i].width + 15) / 16 * 16;
    }
    w->attn = at;
    w->dpos = xcalloc(B, sizeof *w->dpos);
    w->drows = xcalloc(B, sizeof *w->drows);
    w->past = xcalloc(B, sizeof *w->past);
    w->cand = xcalloc(B * V, sizeof *w->cand);
    w->chosen = xcalloc(B, sizeof *w->chosen);
    w->chosen_logp = xcalloc(B, sizeof *w->chosen_logp);
    return 0;
}

/* Gives up a user of a prompt's cache; the last one frees it. */
static void sampler_prefix_release(struct prefix *p)
{
    if (--p->users > 0)
        return;
    slab_free(p->kv.slab);
    free(p->logits);
    free(p);
}

/* What a run that ends early leaves: its caller hears of every sample. */
static void sampler_tell_rest(struct sampler_worker *w)
{
    struct sampler_run_state *s = w->run;

    if (!s->o.more)
        return;
    for (int i = 0; i < w->n_rows; i++)
        sampler_told(s, w->rows[i].asked, w->rows[i].out);
    for (int i = w->at_ready; i < w->n_ready; i++)
        for (int j = w->ready[i].u.from, to = w->ready[i].u.to; j < to; j++)
            sampler_told(s, w->ready[i].u.a, &w->ready[i].u.a->samples[j]);
    for (; s->next_unit < s->n_units; s->next_unit++)
        for (int j = s->units[s->next_unit].from, to = s->units[s->next_unit].to; j < to; j++)
            sampler_told(s, s->units[s->next_unit].a, &s->units[s->next_unit].a->samples[j]);
}

/* Frees a worker; rows that were not finished are given back. */
static void sampler_worker_free(struct sampler_worker *w)
{
    sampler_tell_rest(w);
    for (int i = 0; i < w->n_rows; i++) /* only when stopped before the end */
        sampler_prefix_release(w->rows[i].prefix);
    for (int i = w->at_ready; i < w->n_ready; i++)
        for (int j = w->ready[i].u.from; j < w->ready[i].u.to; j++)
            sampler_prefix_release(w->ready[i].prefix);
    slab_free(w->kv_slab);
    slab_free(w->prefill_slab);
    slab_free(w->decode_slab);
    void *owned[] = {w->rows, w->ready, w->pseq, w->free_slots, w->pos, w->ptok, w->pcu, w->dpos, w->drows,
                             w->past, w->cand,
                             w->chosen, w->chosen_logp};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        free(owned[i]);
}

/* ---- prefill ---- */

/* The state of every prompt behind one layer, into its prefix. */
static void sampler_keep_layer(struct sampler_worker *w, int l, int n_seq)
{
    struct model *m = w->m;
    struct model_dims n = model_dims(m);
    enum mix mix = m->layers[l].mix;
    size_t in = (size_t)n.in[mix], ld = (size_t)(n.q + n.kv);

    for (int i = 0; i < n_seq; i++) {
        size_t at = (size_t)w->pcu[i];
        struct kv_cache *c = &w->pseq[i]->kv;
        if (mix == MIX_DELTA)
            kv_fill_conv(m, c, l, c->n, w->acts.qkv + at * in, (int)in);
        else
            kv_fill(m, c, l, c->n, w->acts.qk + at * ld + (size_t)n.q, (int)ld,
                    w->acts.qkv + at * in + (size_t)n.v_at, (int)in);
    }
}

/* n prompts lie packed in ptok, pcu and pos; their prefixes in pseq. Ends with px behind the last layer. */
static void sampler_prefill_layers(struct sampler_worker *w, int n_seq)
{
    struct model *m = w->m;
    struct model_dims n = model_dims(m);
    float **states = xcalloc((size_t)n_seq, sizeof *states);
    struct pack_geometry g = {.T = w->pcu[n_seq], .seqs = {n_seq, w->pcu, NULL, NULL}, .pos = w->pos,
                               .rope = w->run->rope, .state = states};
    struct forward_scratch f = {w->ph, w->pact, w->pattn, w->pattn_per};

    model_embed(m, g.T, w->ptok, w->px);
    for (int l = 0; l < m->config.num_layers; l++) {
        layer_acts_place(&w->acts, &n, m->layers[l].mix, w->prefill_cap, w->prefill_slab);
        memcpy(w->acts.x, w->px, (size_t)g.T * (size_t)n.d * sizeof *w->px);
        for (int i = 0; i < n_seq && m->layers[l].mix == MIX_DELTA; i++)
            states[i] = kv_state(m, &w->pseq[i]->kv, l);
        model_layer_forward(m, l, &g, &w->acts, &f, w->px);
        sampler_keep_layer(w, l, n_seq);
    }
    free(states);
}

/* The logits behind the last token of each prompt. */
static void sampler_prefill_logits(struct sampler_worker *w, int n_seq)
{
    struct model *m = w->m;
    size_t d = (size_t)m->config.hidden_size;

    for (int i = 0; i < n_seq; i++) {
        float *row = w->ph; /* free by now */
        m->ops->rmsnorm_mt(1, (int)d, w->px + ((size_t)w->pcu[i + 1] - 1) * d, m->final_norm,
                           model_dims(m).plus, m->config.rms_norm_eps, row, NULL);
        m->ops->gemm_mt(1, m->config.vocab_size, (int)d, row, (int)d, false, model_packs(m, PACK_FORWARD)->head,
                        w->pseq[i]->logits, m->config.vocab_size, GEMM_SET);
    }
}

/* A prompt's cache with one user; NULL with e. */
static struct prefix *sampler_prefix_new(struct sampler_worker *w, const struct sample_request *q, struct err *e)
{
    struct prefix *p;
    float *slab = slab_alloc(kv_cache_floats(w->m, q->n_prompt), e, "the KV cache of a prompt");

    if (!slab)
        return NULL;
    p = xcalloc(1, sizeof *p);
    kv_cache_place(&p->kv, q->n_prompt, slab);
    p->kv.n = q->n_prompt;
    p->logits = xmalloc((size_t)w->m->config.vocab_size * sizeof *p->logits);
    return p;
}

/* Adds the prompt of a unit to the pack, or shares it with the unit before when that is of the same request. */
static int sampler_pack_unit(struct sampler_worker *w, const struct unit *u, int *n_seq, struct err *e)
{
    const struct sample_request *q = &u->a->q;
    struct ready_unit *r = &w->ready[w->n_ready];
    int T = *n_seq ? w->pcu[*n_seq] : 0;

    if (w->n_ready && w->ready[w->n_ready - 1].u.a == u->a) {
        r->prefix = w->ready[w->n_ready - 1].prefix;
    } else {
        if (!(r->prefix = sampler_prefix_new(w, q, e)))
            return -1;
        for (int t = 0; t < q->n_prompt; t++) {
            w->ptok[T] = q->prompt[t];
            w->pos[T++] = t;
        }
        w->pseq[(*n_seq)++] = r->prefix;
        w->pcu[*n_seq] = T;
    }
    r->u = *u;
    r->prefix->users += u->to - u->from;
    w->n_ready++;
    return 0;
}

/* Of a run that goes on, which has one worker. */
static void sampler_await_unit(struct sampler_run_state *s, bool idle)
{
    struct dev_asked *a = sampler_one_more(s, idle);

    if (a)
        sampler_add_units(s, a, UNIT);
}

/* Takes units for the rows that are free, as far as their prompts fit together, and prefills them. */
static int sampler_take_units(struct sampler_worker *w, struct err *e)
{
    struct sampler_run_state *s = w->run;
    int n_seq = 0, want = w->n_free, T = 0, rc = 0;

    w->n_ready = w->at_ready = 0;
    while (rc == 0 && want > 0 && w->n_ready < w->max_rows) {
        struct unit u;
        if (s->o.more && s->next_unit == s->n_units)
            sampler_await_unit(s, false);
        pthread_mutex_lock(&s->lock);
        bool got = s->next_unit < s->n_units &&
                   (w->n_ready == 0 || T + s->units[s->next_unit].a->q.n_prompt <= w->prefill_cap);
        if (got)
            u = s->units[s->next_unit++];
        pthread_mutex_unlock(&s->lock);
        if (!got)
            break;
        rc = sampler_pack_unit(w, &u, &n_seq, e);
        T = w->pcu[n_seq];
        want -= u.to - u.from;
    }
    if (rc == 0 && n_seq) {
        sampler_prefill_layers(w, n_seq);
        sampler_prefill_logits(w, n_seq);
    }
    return rc;
}

/* ---- rows ---- */

/* Ends a row's sample and frees its place. */
static void sampler_finish_row(struct sampler_worker *w, struct sampler_row *r, enum finish why)
{
    struct sampler_run_state *s = w->run;

    r->out->finish = why;
    w->free_slots[w->n_free++] = r->slot;
    sampler_prefix_release(r->prefix);
    r->prefix = NULL; /* marks the row as over */
    pthread_mutex_lock(&s->lock);
    if (s->n_finished == s->cap_finished) {
        s->cap_finished = 2 * s->cap_finished + 64;
        s->finished = xrealloc(s->finished, (size_t)s->cap_finished * sizeof *s->finished);
    }
    s->finished[s->n_finished++] = (struct ended){r->asked, r->out};
    s->done++;
    pthread_cond_signal(&s->moved);
    pthread_mutex_unlock(&s->lock);
}

static bool sampler_is_stop(const struct sampler_run_state *s, int32_t token)
{
    for (int i = 0; i < s->n_stop; i++)
        if (s->stop[i] == token)
            return true;
    return false;
}

/* Does the caller want more of it? */
static bool sampler_tell_token(struct sampler_run_state *s, const struct sample *o)
{
    bool goes_on;

    if (!s->o.on_token)
        return true;
    pthread_mutex_lock(&s->lock);
    goes_on = s->o.on_token(s->o.ctx, o);
    pthread_mutex_unlock(&s->lock);
    return goes_on;
}

/* Appends a drawn token to the row's sample, and notes whether that has ended. */
static void sampler_take_token(struct sampler_worker *w, struct sampler_row *r, int32_t token, float logp)
{
    struct sample *o = r->out;
    bool wanted;

    if (o->n == r->cap) {
        r->cap = sampler_min_int(r->cap ? 2 * r->cap : 64, r->max_new);
        o->tokens = xrealloc(o->tokens, (size_t)r->cap * sizeof *o->tokens);
        o->logp = xrealloc(o->logp, (size_t)r->cap * sizeof *o->logp);
    }
    o->tokens[o->n] = token;
    o->logp[o->n++] = logp;
    r->last = token;
    w->drawn++;
    wanted = sampler_tell_token(w->run, o);
    if (!wanted || sampler_is_stop(w->run, token))
        sampler_finish_row(w, r, FINISH_STOP);
    else if (o->n == r->max_new)
        sampler_finish_row(w, r, FINISH_LENGTH);
}

/* Removes rows that are over. */
static void sampler_drop_finished(struct sampler_worker *w)
{
    int k = 0;

    for (int i = 0; i < w->n_rows; i++)
        if (w->rows[i].prefix)
            w->rows[k++] = w->rows[i];
    w->n_rows = k;
}

/* Before the token is taken: what could be drawn in its place. */
static void sampler_keep_set(struct sample *o, const struct choice_candidate *c, int n)
{
    int had = o->n ? o->kept_to[o->n - 1] : 0;

    sample_keep_room(o, had + n);
    for (int i = 0; i < n; i++)
        o->kept[had + i] = c[i].id;
    o->kept_to[o->n] = had + n;
}

/* Draws row i's next token from its logits; *logp is its log-probability. */
static int32_t sampler_choose_for(struct sampler_worker *w, int i, const float *z, struct sampler_row *r, float *logp)
{
    size_t V = (size_t)w->m->config.vocab_size, at = (size_t)i * V;
    const struct sample_choice *c = &r->asked->choice;
    struct choice_rule rule = {c->temperature, c->top_p, c->top_k, w->m->n_ids};

    int kept = 0;
    int32_t id = choose_token(w->m->ops, (int)V, z, &rule, &r->rng, w->scratch + at, w->cand + at,
                              w->run->o.keep ? &kept : NULL, logp);

    if (w->run->o.keep)
        sampler_keep_set(r->out, w->cand + at, kept);
    return id;
}

/* The next waiting sample gets a row and its first token. */
static void sampler_admit_one(struct sampler_worker *w)
{
    struct sampler_run_state *s = w->run;
    struct ready_unit *u = &w->ready[w->at_ready];
    struct dev_asked *a = u->u.a;
    struct sampler_row *r = &w->rows[w->n_rows++];
    int index = u->u.from++;
    float logp;
    int32_t token;

    *r = (struct sampler_row){.slot = w->free_slots[--w->n_free], .prefix = u->prefix,
                              .asked = a, .out = &a->samples[index], .max_new = a->max_new};
    kv_cache_place(&r->kv, s->max_new, w->kv_slab + (size_t)r->slot * w->kv_floats);
    kv_copy_states(w->m, &r->prefix->kv, &r->kv);
    rng_seed(&r->rng, a->q.seed, (uint64_t)index);
    if (u->u.from == u->u.to)
        w->at_ready++;
    token = sampler_choose_for(w, 0, r->prefix->logits, r, &logp);
    sampler_take_token(w, r, token, logp);
}

/* Fills free slots with waiting samples, whose prompts are run first. */
static int sampler_admit(struct sampler_worker *w, struct err *e)
{
    while (w->n_free > 0) {
        if (w->at_ready == w->n_ready && sampler_take_units(w, e) < 0)
            return -1;
        if (w->at_ready == w->n_ready)
            return 0; /* nothing left */
        while (w->at_ready < w->n_ready && w->n_free > 0 && w->n_rows < w->max_rows)
            sampler_admit_one(w);
        sampler_drop_finished(w); /* a first token may already be a stop */
    }
    return 0;
}

/* ---- decode ---- */

/* w->qkv to w->mixed, for B rows. */
static void sampler_decode_mix_attention(struct sampler_worker *w, int layer, int B)
{
    struct model *m = w->m;
    const struct model_layer *l = &m->layers[layer];
    struct model_dims n = model_dims(m);
    double eps = m->config.rms_norm_eps;
    const float *rope = w->run->rope;
    int ld = n.q + n.kv;
    bool gated = n.q_step > n.dim;

    m->ops->qk_norm_rope_mt(B, model_q_heads(&n), w->qkv, n.qkv, l->q_norm, eps, w->dpos, rope, w->qk, ld, NULL);
    m->ops->qk_norm_rope_mt(B, model_k_heads(&n), w->qkv + n.k_at, n.qkv, l->k_norm, eps, w->dpos, rope, w->qk + n.q,
                            ld,
                            NULL);
    for (int i = 0; i < B; i++) {
        w->rows[i].kv.n--; /* counted once per step, before the first layer */
        kv_append(m, &w->rows[i].kv, layer, w->qk + (size_t)i * (size_t)ld + n.q,
                  w->qkv + (size_t)i * (size_t)n.qkv + n.v_at);
        w->rows[i].kv.n++;
    }
    decode_attention(m, layer, B, w->drows, w->qk, ld, gated ? w->att : w->mixed, w->attn, w->attn_per);
    if (gated)
        m->ops->out_gate_mt(B, n.heads, n.dim, w->att, w->qkv + n.dim, n.qkv, n.q_step, w->mixed);
}

/* The delta rule for one token of B rows. */
static void sampler_decode_mix_delta(struct sampler_worker *w, int layer, int B)
{
    struct model *m = w->m;
    const struct model_layer *l = &m->layers[layer];
    struct model_dims n = model_dims(m);
    int in = n.in[MIX_DELTA];
    struct delta_gates gates = {w->qkv + n.b_at, w->qkv + n.a_at, l->a_log, l->dt_bias};

    for (int i = 0; i < B; i++)
        w->past[i] = kv_conv(m, &w->rows[i].kv, layer);
    m->ops->conv_silu_step_mt(B, n.conv, n.taps, w->qkv, in, l->conv, w->past, w->qk);
    for (int i = 0; i < B; i++)
        w->past[i] = kv_state(m, &w->rows[i].kv, layer);
    m->ops->delta_step_mt(&n.delta, B, w->qk, &gates, w->past, w->att);
    m->ops->gated_norm_mt(B, n.delta.v_heads, n.delta.v_dim, w->att, l->mix_norm, m->config.rms_norm_eps,
                          w->qkv + n.z_at, in, w->mixed);
}

/* One layer for one token of B rows. */
static void sampler_decode_layer(struct sampler_worker *w, int layer, int B)
{
    static void (*const mix[2])(struct sampler_worker *, int, int) = {sampler_decode_mix_attention,
                                                                      sampler_decode_mix_delta};
    struct model *m = w->m;
    const struct ops *op = m->ops;
    const struct model_layer *l = &m->layers[layer];
    const struct layer_packs *p = &model_packs(m, PACK_FORWARD)->layers[layer];
    struct model_dims n = model_dims(m);
    double eps = m->config.rms_norm_eps;
    int in = n.in[l->mix], out = n.mix[l->mix];

    op->rmsnorm_mt(B, n.d, w->x, l->norm1, n.plus, eps, w->h, NULL);
    if (l->bias)
        op->bias_rows_mt(B, in, l->bias, w->qkv, in);
    op->gemm_mt(B, in, n.d, w->h, n.d, false, p->qkv, w->qkv, in, l->bias ? GEMM_ADD : GEMM_SET);
    mix[l->mix](w, layer, B);
    op->gemm_mt(B, n.d, out, w->mixed, out, false, p->o, w->x, n.d, GEMM_ADD);
    op->rmsnorm_mt(B, n.d, w->x, l->norm2, n.plus, eps, w->h, NULL);
    op->gemm_mt(B, 2 * n.f, n.d, w->h, n.d, false, p->gate_up, w->gate_up, 2 * n.f, GEMM_SET);
    op->swiglu_mt(B, n.f, w->gate_up, w->act);
    op->gemm_mt(B, n.d, n.f, w->act, n.f, false, p->down, w->x, n.d, GEMM_ADD);
}

/* One token of all rows, up to the drawn ones. */
static void sampler_decode_step(struct sampler_worker *w)
{
    struct model *m = w->m;
    int B = w->n_rows, d = m->config.hidden_size, V = m->config.vocab_size;

    for (int i = 0; i < B; i++) {
        struct sampler_row *r = &w->rows[i];
        memcpy(w->x + (size_t)i * (size_t)d, m->embed + (size_t)r->last * (size_t)d, (size_t)d * sizeof *w->x);
        w->dpos[i] = r->prefix->kv.n + r->kv.n;
        r->kv.n++;
        w->drows[i] = (struct decode_row){&r->prefix->kv, &r->kv};
    }
    for (int l = 0; l < m->config.num_layers; l++)
        sampler_decode_layer(w, l, B);
    m->ops->rmsnorm_mt(B, d, w->x, m->final_norm, model_dims(m).plus, m->config.rms_norm_eps, w->h, NULL);
    m->ops->gemm_mt(B, V, d, w->h, d, false, model_packs(m, PACK_FORWARD)->head, w->logits, V, GEMM_SET);
    for (int i = 0; i < B; i++)
        w->chosen[i] = sampler_choose_for(w, i, w->logits + (size_t)i * (size_t)V, &w->rows[i], &w->chosen_logp[i]);
    for (int i = 0; i < B; i++)
        sampler_take_token(w, &w->rows[i], w->chosen[i], w->chosen_logp[i]);
    sampler_drop_finished(w);
}

/* ---- the run ---- */

/* The caller's thread passes on what has finished, so that callbacks need no locks of their own. */
static void sampler_tell(struct sampler_run_state *s, bool last)
{
    double now = now_s();
    uint64_t drawn;
    int done;

    pthread_mutex_lock(&s->lock);
    while (s->n_told < s->n_finished) {
        struct ended x = s->finished[s->n_told++];
        pthread_mutex_unlock(&s->lock);
        sampler_told(s, x.a, x.s);
        pthread_mutex_lock(&s->lock);
    }
    s->n_told = s->n_finished = 0;
    drawn = s->drawn;
    done = s->done;
    pthread_mutex_unlock(&s->lock);
    if (s->o.progress && (last || now - s->last_report >= 0.1)) {
        s->last_report = now;
        s->o.progress(s->o.ctx, drawn, done, s->total);
    }
}

/* Admits prompts and draws until no work is left. tells: this worker calls the callbacks. */
static int sampler_worker_loop(struct sampler_worker *w, bool tells, struct err *e)
{
    struct sampler_run_state *s = w->run;

    if (sampler_alloc_rows(w, e) < 0 || sampler_alloc_prefill(w, e) < 0 || sampler_alloc_decode(w, e) < 0)
        return -1;
    for (;;) {
        bool failed;
        if (stop_requested())
            return err_set(e, ERR_STOP, "stopped before all samples were drawn");
        if (sampler_admit(w, e) < 0)
            return -1;
        if (w->n_rows)
            sampler_decode_step(w);
        pthread_mutex_lock(&s->lock);
        s->drawn += w->drawn;
        failed = s->failed;
        pthread_mutex_unlock(&s->lock);
        w->drawn = 0;
        if (tells)
            sampler_tell(s, false);
        if (failed)
            return 0;
        if (w->n_rows == 0 && w->at_ready == w->n_ready && s->next_unit >= s->n_units) {
            if (s->over)
                return 0;
            sampler_await_unit(s, true);
        }
    }
}

/* Runs a worker; the first failure is kept for all. */
static void sampler_worker_run(struct sampler_run_state *s, bool tells)
{
    struct sampler_worker w = {.run = s, .m = s->m};
    struct err e = ERR_INIT;
    int rc = sampler_worker_loop(&w, tells, &e);

    sampler_worker_free(&w);
    pthread_mutex_lock(&s->lock);
    if (rc < 0 && !s->failed) {
        s->failed = true;
        s->err = e;
    }
    s->working--;
    pthread_cond_signal(&s->moved);
    pthread_mutex_unlock(&s->lock);
}

/* Waits for the other workers and keeps telling. */
static void sampler_wait_for_workers(struct sampler_run_state *s)
{
    bool more = true;

    while (more) {
        struct timespec until = stop_look_again();

        pthread_mutex_lock(&s->lock);
        if (s->working > 0 && s->n_told == s->n_finished)
            pthread_cond_clockwait(&s->moved, &s->lock, CLOCK_MONOTONIC, &until);
        more = s->working > 0;
        pthread_mutex_unlock(&s->lock);
        sampler_tell(s, !more);
    }
}

/* Runs all workers and waits for them. */
static void sampler_run_workers(struct sampler_run_state *s)
{
    s->working = s->n_workers;
    if (s->n_workers == 1) { /* alone: its operators use all threads */
        sampler_worker_run(s, true);
        sampler_tell(s, true);
        return;
    }
#pragma omp parallel num_threads(s->n_workers)
    {
        int n = omp_get_num_threads(), me = omp_get_thread_num();
        if (me == 0 && n < s->n_workers) { /* fewer threads than asked for: the missing workers are not waited for */
            pthread_mutex_lock(&s->lock);
            s->working -= s->n_workers - n;
            pthread_mutex_unlock(&s->lock);
        }
        sampler_worker_run(s, me == 0);
        if (me == 0)
            sampler_wait_for_workers(s);
    }
}

/* The next request for a device; NULL: none. idle: waits for one. */
static struct dev_asked *sampler_next_asked(void *run, bool idle)
{
    struct sampler_run_state *s = run;

    if (s->o.more)
        return sampler_one_more(s, idle);
    return s->taken < s->n_reqs ? &s->asked[s->taken++] : NULL;
}

static void sampler_told_on_device(void *run, struct dev_asked *a, struct sample *o)
{
    sampler_told(run, a, o);
}

/* Samples all requests on the device; results and failures are in s. */
static void sampler_sample_on_device(struct sampler_run_state *s)
{
    struct dev_job j = {.o = &s->o, .total = s->o.more ? INT_MAX : s->total, .max_new = s->max_new,
                        .max_prompt = s->max_prompt, .stop = s->stop, .n_stop = s->n_stop, .next = sampler_next_asked,
                        .told = sampler_told_on_device, .run = s};

    for (int i = 0; i < s->n_reqs; i++)
        j.all_prompts += s->asked[i].q.n_prompt;
    if (s->o.more)
        j.all_prompts = INT_MAX;
    s->failed |= dev_sample(s->m, &j, &s->err) < 0;
}

int sampler_run(struct model *m, const struct sampler_options *o, const struct sample_request *reqs, int n_reqs,
                struct sample **ret, size_t *ret_n, struct err *e)
{
    struct sampler_run_state s = {.m = m, .o = *o, .n_reqs = n_reqs, .lock = PTHREAD_MUTEX_INITIALIZER,
                                  .moved = PTHREAD_COND_INITIALIZER};

    if (sampler_check_options(&s, e) < 0 || sampler_check_requests(&s, reqs, e) < 0)
        return -1;
    sampler_make_samples(&s, reqs);
    if ((s.total || o->more) && m->dev) {
        sampler_sample_on_device(&s);
    } else if (s.total || o->more) {
        sampler_plan_rows(&s);
        s.rope = model_rope_table(&m->config, s.max_prompt + s.max_new);
        model_packs(m, PACK_FORWARD); /* made here, by one thread */
        sampler_run_workers(&s);
    }
    free(s.rope);
    free(s.units);
    free(s.asked);
    free(s.finished);
    if (s.failed) {
        if (e)
            *e = s.err;
        if (s.err.kind != ERR_STOP) {
            samples_free(s.samples, (size_t)s.total);
            return -1;
        }
    }
    if (o->more) {
        free(s.samples);
        s.samples = NULL;
    }
    *ret = s.samples;
    *ret_n = (size_t)s.total;
    return s.failed ? -1 : 0;
}
