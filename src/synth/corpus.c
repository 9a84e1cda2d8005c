/* corpus.c - see corpus.h. Reading order: corpus_make at the end. */
#include "synth/corpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "synth/record.h"

struct corpus {
    const struct corpus_options *o;
    struct plan plan;
    struct buf train, heldout, prompts, rejected; /* JSON Lines, in plan order */
    json_t *by_family, *by_strategy, *by_reason;  /* counters */
    struct corpus_stats n;
};

static void add_line(struct buf *b, json_t *v)
{
    char *text = json_text(v);

    buf_adds(b, text);
    buf_addc(b, '\n');
    free(text);
    json_decref(v);
}

static void count(json_t *counters, const char *key)
{
    json_object_set_new(counters, key, json_integer(json_i64(counters, key, 0) + 1));
}

/* ---- records ---- */

static void add_task_records(struct corpus *c, const struct plan_task *t)
{
    bool held = t->side == PLAN_HELDOUT;

    for (int i = 0; i < t->n_programs; i++) {
        char key[96];

        add_line(held ? &c->heldout : &c->train, record_generate(t, &t->program[i], &c->o->plan, NULL));
        snprintf(key, sizeof key, "%s/%s", t->g.family, t->program[i].t->strategy);
        count(c->by_strategy, key);
        *(held ? &c->n.heldout : &c->n.train) += 1;
    }
    if (!held)
        add_line(&c->prompts, record_rl_prompt(t, &c->o->plan, c->n.prompts++));
    count(c->by_family, t->g.family);
}

static void add_records(struct corpus *c)
{
    size_t i;
    json_t *v;

    for (int k = 0; k < c->plan.n; k++)
        add_task_records(c, &c->plan.task[k]);
    json_array_foreach(c->plan.rejected, i, v) {
        count(c->by_reason, json_str(v, "reason", ""));
        add_line(&c->rejected, json_incref(v));
        c->n.rejected++;
    }
}

/* ---- files ---- */

static int write_task(const struct corpus *c, const struct plan_task *t, struct err *e)
{
    char *path = xasprintf("%s/tasks/%s/%s.py", c->o->out, t->side == PLAN_HELDOUT ? "heldout" : "train", t->name);
    int rc = file_write(path, t->code, strlen(t->code), e);

    free(path);
    return rc;
}

static int write_tasks(const struct corpus *c, struct err *e)
{
    static const char *const sides[] = {"tasks/train", "tasks/heldout"};

    for (int i = 0; i < 2; i++) {
        char *dir = path_join(c->o->out, sides[i]);
        /* an earlier corpus in this folder must not leave tasks behind */
        int rc = file_is_dir(dir) && dir_remove(dir, e) < 0 ? -1 : dir_make(dir, e);
        free(dir);
        if (rc < 0)
            return -1;
    }
    for (int i = 0; i < c->plan.n; i++)
        if (write_task(c, &c->plan.task[i], e) < 0)
            return -1;
    return 0;
}

static int write_lines(const struct corpus *c, const char *name, const struct buf *b, struct err *e)
{
    char *path = path_join(c->o->out, name);
    int rc = b->cut ? err_set(e, ERR_INPUT, "'%s' would exceed %zu bytes; ask for fewer tasks", path, b->max)
                    : file_write(path, b->p, b->n, e);

    free(path);
    return rc;
}

static int distinct_graphs(const struct plan *p, enum plan_side side)
{
    int n = 0;

    for (int i = 0; i < p->n; i++) {
        bool first = p->task[i].side == side;
        for (int k = 0; k < i && first; k++)
            first = p->task[k].side != side || p->task[k].hash != p->task[i].hash;
        n += first;
    }
    return n;
}

static int write_stats(const struct corpus *c, struct err *e)
{
    char *path = path_join(c->o->out, "stats.json");
    const struct plan *p = &c->plan;
    json_t *v = json_pack("{s:s, s:I, s:b, s:{s:i, s:i, s:i, s:i}, s:{s:i, s:i, s:i}, s:{s:i, s:i, s:i, s:i}, s:O, s:O, s:O}",
                          "generator", SYNTH_GENERATOR, "seed", (json_int_t)c->o->plan.seed, "verified", c->o->verify,
                          "records", "train", c->n.train, "heldout", c->n.heldout, "prompts", c->n.prompts, "repairs",
                          c->n.repairs, "distinct_graphs", "train", distinct_graphs(p, PLAN_TRAIN), "heldout",
                          distinct_graphs(p, PLAN_HELDOUT), "prompts", distinct_graphs(p, PLAN_PROMPT), "draws", "all",
                          p->drawn, "other_side", p->refused_split, "repeated", p->refused_twice, "trivial",
                          p->refused_trivial, "families", c->by_family, "strategies", c->by_strategy, "rejected",
                          c->by_reason);
    int rc = json_write(path, v, e);

    json_decref(v);
    free(path);
    return rc;
}

static int write_files(const struct corpus *c, struct err *e)
{
    return write_tasks(c, e) < 0 || write_lines(c, "train.jsonl", &c->train, e) < 0 ||
                   write_lines(c, "heldout.jsonl", &c->heldout, e) < 0 ||
                   write_lines(c, "prompts.jsonl", &c->prompts, e) < 0 ||
                   write_lines(c, "rejected.jsonl", &c->rejected, e) < 0 || write_stats(c, e) < 0
               ? -1
               : 0;
}

int corpus_make(const struct corpus_options *o, struct corpus_stats *ret, struct err *e)
{
    struct corpus c = {.o = o, .by_family = json_object(), .by_strategy = json_object(), .by_reason = json_object()};
    struct buf *texts[] = {&c.train, &c.heldout, &c.prompts, &c.rejected};
    struct arena a = {0};
    int rc;

    for (int i = 0; i < 4; i++)
        buf_init(texts[i], (size_t)4 << 30);
    rc = dir_make(o->out, e) < 0 || plan_make(&o->plan, &a, &c.plan, e) < 0 ? -1 : 0;
    if (!rc) {
        add_records(&c);
        rc = write_files(&c, e);
        *ret = c.n;
        json_decref(c.plan.rejected);
    }
    for (int i = 0; i < 4; i++)
        buf_free(texts[i]);
    json_decref(c.by_family), json_decref(c.by_strategy), json_decref(c.by_reason);
    arena_free(&a);
    return rc;
}
