/* plan.c - see plan.h. Every task draws from its own random stream, so one more task never changes the others. */
#include "synth/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "synth/interp.h"
#include "synth/style.h"
#include "translate/musa.h"

#define MAX_DRAWS 4000 /* for one task; small families have few graphs */

struct seen {
    uint64_t *key;
    size_t cap, n;
};

/* Adds a key; false if it was there. Open addressing, zero is never a key. */
static bool seen_add(struct seen *s, uint64_t key)
{
    if (2 * s->n >= s->cap) {
        struct seen bigger = {xcalloc(s->cap ? 2 * s->cap : 1024, sizeof *s->key), s->cap ? 2 * s->cap : 1024, 0};
        for (size_t i = 0; i < s->cap; i++)
            if (s->key[i])
                seen_add(&bigger, s->key[i]);
        free(s->key);
        *s = bigger;
    }
    for (size_t i = (key |= 1) % s->cap;; i = (i + 1) % s->cap) {
        if (s->key[i] == key)
            return false;
        if (!s->key[i]) {
            s->key[i] = key, s->n++;
            return true;
        }
    }
}

/* Training tasks may share a graph (other sizes, other constants). Held-out tasks may not, nor may prompts for
 * reinforcement learning, which show none that a training task has shown: they ask for what was never answered. */
static uint64_t task_key(const struct plan_task *t)
{
    return t->side == PLAN_TRAIN ? hash64(t->code, strlen(t->code), 5) : t->hash;
}

static char *task_text(const struct graph *g, struct arena *a)
{
    struct buf b;
    char *s;

    buf_init(&b, BUF_MAX_TEXT);
    emit_task(g, &b);
    s = arena_strndup(a, b.p, b.n);
    buf_free(&b);
    return s;
}

static void note_trivial(const struct graph *g, const char *why, struct plan *p)
{
    struct buf text;

    p->refused_trivial++;
    buf_init(&text, 4096);
    graph_text(g, &text);
    json_array_append_new(p->rejected, json_pack("{s:s, s:s, s:s, s:s}", "what", "task", "family", g->family, "graph",
                                                 text.p, "reason", why));
    buf_free(&text);
}

/* Draws until a graph of the family fits the side, is new and is not trivial. 0, or -1 if none was found. */
static int draw_task(const struct plan_options *o, struct rng *r, int family, struct seen *seen, struct arena *a,
                     struct plan *p, struct plan_task *t)
{
    char why[64];

    for (int tries = 0; tries < MAX_DRAWS; tries++) {
        p->drawn++;
        gen_graph(r, family, &o->gen, &t->g);
        t->hash = graph_hash(&t->g);
        if (graph_held_out(t->hash) != (t->side == PLAN_HELDOUT)) {
            p->refused_split++;
            continue;
        }
        if (!interp_worthwhile(&t->g, why)) {
            note_trivial(&t->g, why, p);
            continue;
        }
        t->code = task_text(&t->g, a);
        if (seen_add(seen, task_key(t)))
            return 0;
        p->refused_twice++;
    }
    return -1;
}

char *plan_dress(const struct plan_options *o, const struct plan_task *t, const struct plan_program *q,
                 const char *plain, struct arena *a)
{
    struct rng r = q->dress;
    struct buf b;
    char *s;

    buf_init(&b, BUF_MAX_TEXT);
    buf_adds(&b, plain);
    if (o->style == PROMPT_FULL)
        style_dress(&r, &t->g, q->t->strategy, &b);
    s = arena_strndup(a, b.p, b.n);
    buf_free(&b);
    return s;
}

/* The program in the plan's dialect, in the arena. What the generator writes, the translator takes. */
static char *in_dialect(const struct plan_options *o, const char *program, struct arena *a)
{
    struct musa_options to_musa = {.to = TO_MUSA, .lang = MUSA_PYTHON};
    struct musa_result r;
    char *s = arena_strdup(a, program);

    if (!o->musa)
        return s;
    if (musa_translate(program, strlen(program), &to_musa, &r, NULL) == 0 && !r.refused)
        s = arena_strndup(a, r.out.p, r.out.n);
    musa_result_free(&r);
    return s;
}

static void write_program(const struct plan_options *o, struct rng *r, struct plan_task *t, struct plan_program *q,
                          struct arena *a)
{
    struct buf cuda, program;

    buf_init(&cuda, BUF_MAX_TEXT);
    buf_init(&program, BUF_MAX_TEXT);
    emit_cuda(&t->g, q->t, &q->s, &cuda);
    emit_program(&t->g, q->t->strategy, cuda.p, &program);
    q->plain = in_dialect(o, program.p, a);
    rng_seed(&q->dress, rng_u64(r), 0);
    q->code = plan_dress(o, t, q, q->plain, a);
    buf_free(&cuda);
    buf_free(&program);
}

static void draw_schedule(const struct plan_options *o, struct rng *r, struct plan_program *q)
{
    int n = 0;

    while (n < 3 && q->t->blocks[n])
        n++;
    q->s.block = q->t->blocks[o->style == PROMPT_FULL ? rng_below(r, (uint64_t)n) : 0];
    q->s.grid = o->style == PROMPT_FULL ? 2 << rng_below(r, 4) : 4;
}

/* Programs with different strategies; a held-out task gets one, as a reference solution. */
static void draw_programs(const struct plan_options *o, struct rng *r, struct plan_task *t, struct arena *a)
{
    const struct tmpl *fit[PLAN_PROGRAMS];
    int n = tmpl_for(&t->g, fit, PLAN_PROGRAMS), want = t->side == PLAN_TRAIN ? o->per_task : 1;

    rng_shuffle(r, fit, (size_t)n, sizeof *fit);
    for (int i = 0; i < n && i < want; i++) {
        struct plan_program *q = &t->program[t->n_programs++];

        q->t = fit[i];
        draw_schedule(o, r, q);
        write_program(o, r, t, q, a);
    }
}

static char *task_name(const struct plan_task *t, int index, struct arena *a)
{
    static const char *const mark[] = {[PLAN_TRAIN] = "", [PLAN_HELDOUT] = "h", [PLAN_PROMPT] = "p"};
    char name[64];

    snprintf(name, sizeof name, "%s_%s%04d", t->g.family, mark[t->side], index);
    return arena_strdup(a, name);
}

/* Deals n tasks of one side. A family that is exhausted passes its turn to the next one. */
static int deal(const struct plan_options *o, enum plan_side side, int n, struct seen *seen, struct arena *a,
                struct plan *p, struct err *e)
{
    bool empty[64] = {false};
    int left = o->n_deal;

    for (int i = 0, turn = 0; i < n; turn = (turn + 1) % o->n_deal) {
        struct plan_task *t = &p->task[p->n];
        struct rng r;

        if (empty[turn])
            continue;
        rng_seed(&r, o->seed, (uint64_t)side << 32 | (uint64_t)i);
        *t = (struct plan_task){.side = side};
        if (draw_task(o, &r, o->deal[turn], seen, a, p, t) < 0) {
            empty[turn] = true;
            if (--left == 0 || (i < o->n_deal && side !=
                PLAN_PROMPT)) // small families may have no graph left to ask for
                return err_set(e, ERR_INPUT, "family '%s' has no further graph for the %s side after %d; raise "
                               "--max-ops, use --ops all, or ask for fewer tasks",
                               families[o->deal[turn]], side == PLAN_HELDOUT ? "held-out" : "training", i);
            continue;
        }
        t->name = task_name(t, i, a);
        if (side != PLAN_PROMPT)
            draw_programs(o, &r, t, a);
        p->n++, i++;
    }
    return 0;
}

int plan_make(const struct plan_options *o, struct arena *a, struct plan *ret, struct err *e)
{
    struct seen train = {0}, held = {0}, asked = {0};
    struct plan p = {.rejected = json_array()};
    int rc;

    p.task = arena_alloc(a, sizeof *p.task * (size_t)(o->tasks + o->heldout + o->prompts + 1));
    rc = deal(o, PLAN_TRAIN, o->tasks, &train, a, &p, e);
    for (int i = 0; rc == 0 && i < p.n; i++)
        seen_add(&asked, p.task[i].hash);
    if (rc == 0)
        rc = deal(o, PLAN_HELDOUT, o->heldout, &held, a, &p, e);
    if (rc == 0)
        rc = deal(o, PLAN_PROMPT, o->prompts, &asked, a, &p, e);
    free(train.key);
    free(held.key);
    free(asked.key);
    if (!rc)
        *ret = p;
    else
        json_decref(p.rejected);
    return rc;
}
