/* seam.h - the judge without a candidate: for each draw the reference's own output goes through the judge's
 * comparison twice, unchanged, which must pass, and with the last element off by four tolerances, which must fail. In
 * between inputs and expected values are made a second time, from nothing. For tests and lab/judge_tasks.c. */
#ifndef TESTS_EVAL_SEAM_H
#define TESTS_EVAL_SEAM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/eval.h"
#include "eval/eval_state.h"
#include "eval/reference/streamed.h"

struct output { /* one of a candidate that there is none of */
    struct tensor t;
    struct device_buf held;
};

struct seam {
    struct eval *ev;
    struct judge_server *sv;
    struct device_context *device_context;
    struct eval_options o;
    int64_t small;
    struct streamed *s;
    struct output *outs;
    size_t n_outs, held; /* held: bytes of the outputs */
    int draws, deciding, wrong, missed;
    char why[600];
    const char *truth;
};

struct part { /* what streamed_compare asks for */
    struct seam *r;
    struct output *out;
    const struct tolerance *tol;
    bool spoil;
};

static inline size_t seam_item(const struct tensor *t)
{
    return dt_size(t->dtype);
}

/* The last element, off by four tolerances. */
static inline int seam_spoil_last(struct part *p, int64_t n, struct err *e)
{
    const struct tensor *t = &p->out->t;
    uint8_t bytes[16];
    struct tensor one = {.dtype = t->dtype, .n = 1, .data = bytes};
    double v;

    if (device_download(&p->r->s->mine, (size_t)(n - 1) * seam_item(t), bytes, seam_item(t), e) < 0)
        return -1;
    v = tensor_at(&one, 0);
    if (t->dtype == DT_BOOL)
        bytes[0] ^= 1;
    else
        tensor_put(t->dtype, bytes, 0,
                   dt_is_float(t->dtype) ? v + 4 * (p->tol->abs + p->tol->rel * (v < 0 ? -v : v)) : v + 1);
    return device_upload(&p->r->s->mine, (size_t)(n - 1) * seam_item(t), bytes, seam_item(t), e);
}

static inline int seam_part(void *ctx, int64_t from, int64_t n, struct err *e)
{
    struct part *p = ctx;
    const struct tensor *t = &p->out->t;
    int rc;

    device_context_lock(p->r->device_context);
    rc = device_copy(&p->r->s->mine, 0, &p->out->held, (size_t)from * seam_item(t), (size_t)n * seam_item(t), e);
    if (rc == 0 && p->spoil && from + n == t->n)
        rc = seam_spoil_last(p, n, e);
    if (rc == 0)
        rc = device_sync(p->r->device_context->dev, e);
    device_context_unlock(p->r->device_context);
    return rc;
}

/* ---- the candidate's outputs: the reference's own, copied ---- */

static inline int seam_add_output(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct seam *r = ctx;
    struct output *o;

    (void)path;
    if (!tree_is_tensor(leaf))
        return 0;
    r->outs = xrealloc(r->outs, (r->n_outs + 1) * sizeof *r->outs);
    o = &r->outs[r->n_outs];
    memset(o, 0, sizeof *o);
    if (tensor_parse(leaf, NULL, SIZE_MAX, &o->t, e) < 0 ||
        device_context_alloc(r->device_context, (size_t)o->t.n * seam_item(&o->t), DEVICE_PLAIN, &o->held, e) < 0)
        return -1;
    r->held += o->held.capacity;
    r->n_outs++;
    return 0;
}

static inline void seam_drop_outputs(struct seam *r)
{
    for (size_t i = 0; i < r->n_outs; i++)
        device_context_free(r->device_context, &r->outs[i].held);
    r->n_outs = 0;
}

static inline int seam_fill_output(struct seam *r, size_t i, struct err *e)
{
    struct output *o = &r->outs[i];
    int64_t per = (int64_t)(r->s->truth.size / seam_item(&o->t));
    enum dtype d;

    for (int64_t at = 0; at < o->t.n; at += per) {
        int64_t n = o->t.n - at < per ? o->t.n - at : per;
        int rc;

        if (streamed_tile(r->s, i, at, n, true, &d, e) < 0)
            return -1;
        device_context_lock(r->device_context);
        rc = device_copy(&o->held, (size_t)at * seam_item(&o->t), &r->s->truth, 0, (size_t)n * seam_item(&o->t), e);
        if (rc == 0)
            rc = device_sync(r->device_context->dev, e);
        device_context_unlock(r->device_context);
        if (rc < 0)
            return -1;
    }
    return 0;
}

static inline int seam_answer(struct seam *r, const struct ref_draw *d, struct err *e)
{
    if (streamed_bind(r->s, d, false, e) < 0 || streamed_expect(r->s, false, e) < 0)
        return -1;
    if (!r->n_outs && tree_each(d->eager.tree, seam_add_output, r, e) < 0)
        return -1;
    for (size_t i = 0; i < r->n_outs; i++)
        if (seam_fill_output(r, i, e) < 0)
            return -1;
    return streamed_drop(r->s, e);
}

/* ---- the judge ---- */

static inline void seam_say(struct seam *r, const struct ref_draw *d, size_t i, const char *what,
                            const struct comparison *c,
                const struct tolerance *tol)
{
    if (r->why[0])
        return;
    snprintf(r->why, sizeof r->why, "%s/%d output %zu: %s; %lld of %lld wrong, %lld NaN; worst at %s: %g, "
             "expected %g; tolerance %g + %g x", d->regime, d->trial, i, what, (long long)c->n_bad, (long long)c->n,
             (long long)c->n_nan, c->worst_at, c->worst_got, c->worst_expected, tol->abs, tol->rel);
}

static inline int seam_judge_output(struct seam *r, const struct ref_draw *d, size_t i, struct err *e)
{
    struct tolerance tol = ref_tolerance(d, i, protocol_find(r->o.protocol), NULL);
    struct part p = {.r = r, .out = &r->outs[i], .tol = &tol};
    struct comparison c;

    if (!tol.usable || !p.out->t.n)
        return 0;
    if (streamed_compare(r->s, i, &p.out->t, &tol, seam_part, &p, &c, e) < 0)
        return -1;
    if (c.kind != CMP_SAME) {
        r->wrong++;
        seam_say(r, d, i, "the reference's own output fails", &c, &tol);
    }
    p.spoil = true; /* also where zeros pass, as where they are the answer: a change shows there too */
    if (d->trial && p.out->t.n > 1 << 26)
        return 0;
    if (streamed_compare(r->s, i, &p.out->t, &tol, seam_part, &p, &c, e) < 0)
        return -1;
    if (c.kind == CMP_SAME) {
        r->missed++;
        seam_say(r, d, i, "an element that is off by four tolerances passes", &c, &tol);
    }
    return 0;
}

/* As a candidate's draw is judged: inputs anew, then what is expected of them. */
static inline int seam_judge(struct seam *r, const struct ref_draw *d, struct err *e)
{
    uint64_t before[STREAMED_INPUTS];
    bool changed[STREAMED_INPUTS];

    memcpy(before, r->s->sums, sizeof before);
    if (streamed_bind(r->s, d, true, e) < 0 || streamed_bind(r->s, d, false, e) < 0 ||
        streamed_changed(r->s, changed, e) < 0)
        return -1;
    for (size_t i = 0; i < r->s->n_inputs; i++)
        if (changed[i] || before[i] != r->s->sums[i])
            return err_set(e, ERR_BUG, "inputs that are drawn a second time are others");
    if (streamed_expect(r->s, false, e) < 0)
        return -1;
    r->truth = r->s->truth_is;
    for (size_t i = 0; i < r->n_outs; i++)
        if (seam_judge_output(r, d, i, e) < 0)
            return -1;
    return streamed_drop(r->s, e);
}

static inline int seam_judge_draws(struct seam *r, struct err *e)
{
    struct ref_draw d;
    json_t *head;
    int rc;

    while ((rc = streamed_next(r->s, &d, &head, e)) == 1) {
        r->draws++;
        r->deciding += ref_decides(&d, protocol_find(r->o.protocol), NULL);
        if (seam_answer(r, &d, e) < 0 || seam_judge(r, &d, e) < 0)
            rc = -1;
        json_decref(head);
        if (rc < 0)
            break;
    }
    if (rc == 0)
        json_decref(head);
    return rc;
}

/* 1: ok; *ret: a row as lab/judge_tasks.c describes it. */
static inline int seam_task(struct seam *r, const struct task *t, json_t **ret)
{
    struct reference_want w = {.sv = r->sv, .t = t, .o = &r->o, .params = "random",
                               .seed = reference_seed(r->ev->servers.secret, 0), .small = r->small};
    struct err why = ERR_INIT;
    double t0 = now_s();
    int rc;
    bool ok;

    r->draws = r->deciding = r->wrong = r->missed = 0;
    r->held = 0;
    r->why[0] = 0;
    r->truth = "";
    if (!strcmp(r->o.protocol, "kernelbench"))
        w.params = "seed";
    snprintf(w.title, sizeof w.title, "task '%.60s'", t->name);
    rc = streamed_open(&w, r->device_context, &r->s, &why);
    if (rc == 0)
        rc = seam_judge_draws(r, &why);
    seam_drop_outputs(r);
    ok = rc == 0 && r->deciding > 0 && !r->wrong && !r->missed;
    *ret = json_pack("{s:s,s:b,s:f,s:f,s:f,s:i,s:i,s:i,s:i,s:s,s:s}", "task", t->name, "ok", ok, "seconds",
                     now_s() - t0, "peak_gib", r->s ? (double)r->s->peak / 0x1p30 : 0.0, "own_gib",
                     r->s ? (double)(r->s->own_peak + r->held) / 0x1p30 : 0.0, "draws", r->draws, "deciding",
                     r->deciding,
                     "wrong", r->wrong, "missed", r->missed, "truth", r->truth, "why", rc < 0 ? why.msg : r->why);
    streamed_close(r->s);
    r->s = NULL;
    return ok;
}

/* Fork server and device of a backend are there. */
static inline int seam_open(struct seam *r, struct err *e)
{
    struct eval_config c = {.jobs = 1, .backend = r->o.backend, .start = true};
    const struct judge_backend *b = backend_find(r->o.backend);

    if (eval_open(&c, &r->ev, e) < 0 || server_get(&r->ev->servers, b, &r->sv, e) < 0)
        return -1;
    r->device_context = &r->sv->kept->contexts.each[0];
    return device_context_open(r->device_context, b, e);
}

static inline void seam_close(struct seam *r)
{
    free(r->outs);
    eval_close(r->ev);
}

#endif
