/* spots.c - see spots.h. */
#include "eval/stage/spots.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "eval/candidate/recording_streamed.h"

#define RUNS 16           /* places of an output, */
#define RUN 256           /* and elements from each on: a run is what a warp or a small block writes */
#define CALLS_LEAST 2     /* that are compared, */
#define CALLS_MOST 8
#define PATIENCE_S 2.0    /* no more of them after this time */

struct output { /* of one call; bytes: runs * per elements */
    size_t tensor;
    struct tensor whole;
    char path[128];
    int runs;
    int64_t per, from[RUNS];
    uint8_t *bytes;
};

struct spots_call {
    uint64_t seed;
    struct output *outputs;
    size_t n;
};

/* ---- taking ---- */

struct taking {
    struct spots *s;
    struct job *j;
    struct spots_call *call;
    size_t tensor;
};

/* Chooses which runs of the output will be looked at; small ones are taken whole. */
static void spots_choose(struct output *o, struct rng *r)
{
    o->per = o->whole.n <= RUNS * RUN ? o->whole.n : RUN;
    o->runs = o->whole.n <= RUNS * RUN ? 1 : RUNS;
    for (int i = 0; i < o->runs; i++)
        o->from[i] = (int64_t)rng_below(r, (uint64_t)(o->whole.n - o->per) + 1);
}

/* A callback of tree_each: notes where the blocks of an output tensor lie that will be looked at. */
static int spots_take_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct taking *t = ctx;
    struct spots_call *c = t->call;
    const struct streamed *st = t->j->held.ref->streamed;
    struct output *o;
    struct recording_place p;
    size_t part;

    if (!tree_is_tensor(leaf))
        return 0;
    t->tensor++;
    if (place_tensor(leaf, &p, e) < 0)
        return -1;
    if (!p.t.n)
        return 0;
    c->outputs = xrealloc(c->outputs, (c->n + 1) * sizeof *c->outputs);
    o = &c->outputs[c->n++];
    *o = (struct output){.tensor = t->tensor - 1, .whole = p.t};
    snprintf(o->path, sizeof o->path, "%s", path);
    spots_choose(o, &t->s->rng);
    part = (size_t)o->per * p.item;
    for (int i = 0; i < o->runs; i++)
        if (recording_streamed_part(t->j, &p, o->from[i], o->per, (uint64_t)i * part, e) < 0)
            return -1;
    o->bytes = xmalloc(part * (size_t)o->runs);
    return device_context_fetch(st->device_context, &st->mine, 0, o->bytes, part * (size_t)o->runs, e);
}

int spots_take(struct spots *s, struct job *j, uint64_t seed, const json_t *output, struct err *e)
{
    struct taking t = {.s = s, .j = j};

    s->v = xrealloc(s->v, (s->n + 1) * sizeof *s->v);
    t.call = &s->v[s->n++];
    *t.call = (struct spots_call){.seed = seed};
    return tree_each(output, spots_take_leaf, &t, e);
}

/* ---- comparing ---- */

/* Compares run i with its expected values and adds what is wrong. */
static void spots_add_run(struct comparison *all, const struct output *o, int i, const uint8_t *want,
                          const struct tolerance *tol)
{
    size_t part = (size_t)o->per * dt_size(o->whole.dtype) * (size_t)dt_components(o->whole.dtype);
    struct tensor expected = {.dtype = o->whole.dtype, .ndim = 1, .shape = {o->per}, .n = o->per, .data = want};
    struct tensor got = expected;
    struct comparison one;

    got.data = o->bytes + (size_t)i * part;
    compare_tensors(&expected, &expected, &got, tol, &one);
    compare_add_tile(all, &o->whole, o->from[i], &one);
}

/* 1: right, 0: wrong, with *worst; -1. */
static int spots_check_output(struct spots *s, struct job *j, const struct ref_draw *base, const struct output *o,
                              struct err *e)
{
    struct streamed *st = j->held.ref->streamed;
    struct tolerance tol = ref_tolerance(base, o->tensor, j->protocol, task_setting(j->task, j->variant, "tolerance"));
    struct comparison all = {.kind = CMP_SAME, .first = -1, .worst = -1};
    size_t part = (size_t)o->per * dt_size(o->whole.dtype) * (size_t)dt_components(o->whole.dtype);
    uint8_t *want = xmalloc(part);
    enum dtype own;
    int rc = 0;

    for (int i = 0; i < o->runs && rc == 0 && tol.usable; i++) {
        if (streamed_tile(st, o->tensor, o->from[i], o->per, true, &own, e) < 0)
            rc = -1;
        else if (own != o->whole.dtype)
            rc = err_set(e, ERR_BUG, "the reference's answer has another type when it is timed");
        else if ((rc = device_context_fetch(st->device_context, &st->truth, 0, want, part, e)) == 0)
            spots_add_run(&all, o, i, want, &tol);
    }
    free(want);
    if (rc == 0 && !compare_passes(&all, &tol) && !s->worst)
        s->worst = correct_worst(base, o->path, &all, &tol);
    return rc < 0 ? -1 : compare_passes(&all, &tol);
}

/* Makes the inputs of a timed call again and compares the noted blocks. Counts in s->checked and s->wrong. */
static int spots_check_call(struct spots *s, struct job *j, const struct ref_draw *base, const struct spots_call *c,
                            struct err *e)
{
    struct streamed *st = j->held.ref->streamed;
    int ok = 1;

    if (streamed_fresh(st, c->seed, e) < 0 || streamed_expect(st, true, e) < 0)
        return -1;
    for (size_t i = 0; i < c->n && ok == 1; i++)
        ok = spots_check_output(s, j, base, &c->outputs[i], e);
    if (streamed_drop(st, ok < 0 ? NULL : e) < 0 || ok < 0)
        return -1;
    s->checked++;
    s->wrong += !ok;
    return 0;
}

int spots_check(struct spots *s, struct job *j, const struct ref_draw *base, struct err *e)
{
    double until = now_s() + PATIENCE_S;

    if (s->n && streamed_bind(j->held.ref->streamed, base, false, e) < 0) /* whatever a program wrote there */
        return -1;
    rng_shuffle(&s->rng, s->v, s->n, sizeof *s->v);
    for (size_t i = 0; i < s->n && i < CALLS_MOST && (i < CALLS_LEAST || now_s() < until); i++)
        if (spots_check_call(s, j, base, &s->v[i], e) < 0)
            return -1;
    return 0;
}

void spots_free(struct spots *s)
{
    for (size_t i = 0; i < s->n; i++) {
        for (size_t k = 0; k < s->v[i].n; k++)
            free(s->v[i].outputs[k].bytes);
        free(s->v[i].outputs);
    }
    free(s->v);
    json_decref(s->worst);
    *s = (struct spots){.rng = s->rng};
}
