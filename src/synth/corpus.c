/* corpus.c - see corpus.h. Reading order: corpus_make at the end; a corpus is a list of jobs (programs and mutants),
 * their verdicts, and the lines that follow from both. */
#include "synth/corpus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "synth/knowledge.h"
#include "synth/mutate.h"
#include "synth/record.h"
#include "synth/values.h"

/* One thing to verify: a program of a task, or a mutant of it. */
struct job {
    const struct plan_task *t;
    const struct plan_program *q;
    int bug;               /* kind, or -1 for the program itself */
    int parent, round;     /* of a mutant: index of the program's job, how often that was broken before */
    const char *code;
    const json_t *verdict; /* NULL: not verified */
};

struct corpus {
    const struct corpus_options *o;
    struct plan plan;
    struct arena arena;
    struct job *job;
    int n_jobs;
    json_t *verdicts;
    struct buf train, heldout, prompts, rejected; /* JSON Lines */
    json_t *families, *strategies, *reasons, *bugs; /* counters */
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

/* ---- jobs ---- */

static void list_programs(struct corpus *c)
{
    for (int i = 0; i < c->plan.n; i++)
        for (int k = 0; k < c->plan.task[i].n_programs; k++) {
            const struct plan_program *q = &c->plan.task[i].program[k];
            c->job[c->n_jobs++] = (struct job){&c->plan.task[i], q, -1, -1, 0, q->code, NULL};
        }
}

/* Breaks training programs, each at most once before any is broken twice, until n mutants exist. */
static void list_mutants(struct corpus *c, int n)
{
    int n_programs = 0, made = 0, *order, *made_of = xcalloc((size_t)mutate_kinds(), sizeof *made_of);
    struct rng r;
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    rng_seed(&r, c->o->plan.seed, (uint64_t)77 << 32);
    order = xcalloc((size_t)c->n_jobs + 1, sizeof *order);
    for (int i = 0; i < c->n_jobs; i++)
        if (c->job[i].t->side == PLAN_TRAIN)
            order[n_programs++] = i;
    rng_shuffle(&r, order, (size_t)n_programs, sizeof *order);
    for (int i = 0; made < n && n_programs && i < 4 * n + n_programs; i++) {
        const struct job *p = &c->job[order[i % n_programs]];
        int bug = mutate_any(&r, made_of, p->q->plain, &b);

        if (bug < 0)
            continue;
        c->job[c->n_jobs++] = (struct job){p->t, p->q, bug, order[i % n_programs], i / n_programs,
                                           plan_dress(&c->o->plan, p->t, p->q, b.p, &c->arena), NULL};
        made++;
    }
    buf_free(&b);
    free(order), free(made_of);
}

static void list_jobs(struct corpus *c)
{
    int n_mutants = c->o->judge ? (int)ceil(c->o->repairs * c->o->plan.tasks) : 0, n = n_mutants;

    for (int i = 0; i < c->plan.n; i++)
        n += c->plan.task[i].n_programs;
    c->job = arena_alloc(&c->arena, sizeof *c->job * (size_t)(n + 1));
    list_programs(c);
    list_mutants(c, n_mutants);
}

static int judge_jobs(struct corpus *c, struct err *e)
{
    struct verify_item *items = xcalloc((size_t)c->n_jobs + 1, sizeof *items);
    struct verify_options v = c->o->verify;
    char *journal = path_join(c->o->out, "verdicts.log.jsonl");
    int rc;

    for (int i = 0; i < c->n_jobs; i++)
        items[i] = (struct verify_item){c->job[i].t->name, c->job[i].t->code, c->job[i].code};
    v.journal = journal;
    rc = c->o->judge(&v, items, c->n_jobs, &c->verdicts, e);
    for (int i = 0; i < c->n_jobs && !rc; i++)
        c->job[i].verdict = json_array_get(c->verdicts, (size_t)i);
    free(items);
    free(journal);
    return rc;
}

/* ---- what the verdicts mean ---- */

static bool passed(const struct job *j)
{
    return !j->verdict || !strcmp(json_str(j->verdict, "status", ""), "passed");
}

/* Convicted of something that a repair can be about. */
static bool is_detected(const struct job *j)
{
    const char *category = json_str(j->verdict, "category", "");

    return !passed(j) && (!strcmp(category, "compile_error") || !strcmp(category, "runtime_error") ||
                          !strcmp(category, "correctness_error"));
}

static void reject(struct corpus *c, const struct job *j, const char *reason)
{
    char key[128];

    add_line(&c->rejected,
             json_pack("{s:s, s:s, s:s, s:s, s:s?, s:s, s:s, s:s}", "what", j->bug < 0 ? "program" : "mutant", "task",
                       j->t->name, "family", j->t->g.family, "strategy", j->q->t->strategy, "mutation",
                       j->bug < 0 ? NULL : mutate_name(j->bug), "reason", reason, "feedback",
                       json_str(j->verdict, "feedback", ""), "code", j->code));
    snprintf(key, sizeof key, "%s: %s", j->bug < 0 ? "program" : "mutant", reason);
    count(c->reasons, key);
    c->n.rejected++;
}

static void add_program(struct corpus *c, const struct job *j)
{
    bool held = j->t->side == PLAN_HELDOUT;
    char key[96];

    if (!passed(j)) {
        reject(c, j, json_str(j->verdict, "category", "failed"));
        return;
    }
    add_line(held ? &c->heldout : &c->train, record_generate(j->t, j->q, &c->o->plan, j->verdict));
    snprintf(key, sizeof key, "%s/%s", j->t->g.family, j->q->t->strategy);
    count(c->strategies, key);
    *(held ? &c->n.heldout : &c->n.train) += 1;
}

static void count_bug(struct corpus *c, const struct job *j, const char *outcome)
{
    json_t *row = json_object_get(c->bugs, mutate_name(j->bug));

    if (!row) {
        row = json_object();
        json_object_set_new(c->bugs, mutate_name(j->bug), row);
    }
    count(row, outcome);
}

static void add_mutant(struct corpus *c, const struct job *j)
{
    const struct job *parent = &c->job[j->parent];
    struct repair x = {mutate_name(j->bug), j->code, j->round, j->verdict, parent->verdict};

    if (!passed(parent))
        return;
    count_bug(c, j, passed(j) ? "undetected" : json_str(j->verdict, "category", "failed"));
    if (!is_detected(j)) {
        reject(c, j, passed(j) ? "undetected" : json_str(j->verdict, "category", "failed"));
        return;
    }
    add_line(&c->train, record_repair(j->t, j->q, &c->o->plan, &x));
    c->n.train++, c->n.repairs++;
}

/* A task stays if it was never to have programs (prompt side) or one of them passed. */
static bool task_stays(const struct corpus *c, const struct plan_task *t)
{
    bool any = t->n_programs == 0;

    for (int i = 0; i < c->n_jobs && !any; i++)
        any = c->job[i].t == t && c->job[i].bug < 0 && passed(&c->job[i]);
    return any;
}

static void add_refused_tasks(struct corpus *c)
{
    size_t i;
    json_t *v;

    json_array_foreach(c->plan.rejected, i, v) {
        char key[128];

        snprintf(key, sizeof key, "task: %s", json_str(v, "reason", ""));
        count(c->reasons, key);
        add_line(&c->rejected, json_incref(v));
        c->n.rejected++;
    }
}

/* Operators that occur in a training program that passed. */
static void list_known(const struct corpus *c, bool *known)
{
    for (int i = 0; i < c->n_jobs; i++) {
        const struct job *j = &c->job[i];
        for (int k = 0; j->bug < 0 && j->t->side == PLAN_TRAIN && passed(j) && k < j->t->g.n; k++)
            known[j->t->g.node[k].op - ops] = true;
    }
}

static void add_knowledge(struct corpus *c)
{
    bool *known = xcalloc(n_ops, sizeof *known);

    list_known(c, known);
    for (int i = 0; i < c->o->knowledge; i++) {
        json_t *v = knowledge_record(&c->o->plan, known, i);
        if (!v)
            break;
        add_line(&c->train, v);
        c->n.train++, c->n.knowledge++;
    }
    free(known);
}

/* What reinforcement learning asks for was never answered in training; without such tasks, the training tasks do. */
static void add_lines(struct corpus *c)
{
    enum plan_side asked = c->o->plan.prompts ? PLAN_PROMPT : PLAN_TRAIN;

    for (int i = 0; i < c->n_jobs; i++)
        if (c->job[i].bug < 0)
            add_program(c, &c->job[i]);
        else
            add_mutant(c, &c->job[i]);
    for (int i = 0; i < c->plan.n; i++) {
        const struct plan_task *t = &c->plan.task[i];

        if (!task_stays(c, t))
            continue;
        count(c->families, t->g.family);
        if (t->side == asked)
            add_line(&c->prompts, record_rl_prompt(t, &c->o->plan, c->n.prompts++));
    }
    add_knowledge(c);
    add_refused_tasks(c);
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
        if (task_stays(c, &c->plan.task[i]) && write_task(c, &c->plan.task[i], e) < 0)
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

/* Held-out graphs with more than one operator (the acceptance asks for at least five). */
static int composed_heldout(const struct plan *p)
{
    int n = 0;

    for (int i = 0; i < p->n; i++)
        n += p->task[i].side == PLAN_HELDOUT && p->task[i].g.n > 1;
    return n;
}

static json_t *mutation_stats(const struct corpus *c)
{
    double made = 0, undetected = 0;
    const char *name, *outcome;
    json_t *row, *k;

    json_object_foreach(c->bugs, name, row)
        json_object_foreach(row, outcome, k) {
            made += (double)json_integer_value(k);
            undetected += strcmp(outcome, "undetected") ? 0 : (double)json_integer_value(k);
        }
    return json_pack("{s:i, s:i, s:o, s:O}", "mutants", (int)made, "undetected", (int)undetected, "kill_score",
                     made ? json_real((made - undetected) / made) : json_null(), "kinds", c->bugs);
}

static json_t *stats(const struct corpus *c)
{
    const struct plan *p = &c->plan;
    json_t *v = json_pack("{s:s, s:I, s:b, s:s}", "generator", SYNTH_GENERATOR, "seed", (json_int_t)c->o->plan.seed,
                          "verified", c->o->judge != NULL, "style", prompt_style_name(c->o->plan.style));

    json_object_set_new(v, "records", json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "train", c->n.train, "repairs",
        c->n.repairs,
                                                "knowledge", c->n.knowledge,
                                                "heldout", c->n.heldout, "prompts", c->n.prompts, "rejected",
                                                c->n.rejected));
    json_object_set_new(v, "distinct_graphs",
                        json_pack("{s:i, s:i, s:i, s:i}", "train", distinct_graphs(p, PLAN_TRAIN), "heldout",
                                  distinct_graphs(p, PLAN_HELDOUT), "heldout_multi_operator", composed_heldout(p),
                                  "prompts", distinct_graphs(p, PLAN_PROMPT)));
    json_object_set_new(v, "draws", json_pack("{s:i, s:i, s:i, s:i}", "all", p->drawn, "other_side", p->refused_split,
                                              "repeated", p->refused_twice, "trivial", p->refused_trivial));
    json_object_set(v, "families", c->families);
    json_object_set(v, "strategies", c->strategies);
    json_object_set(v, "rejected", c->reasons);
    json_object_set_new(v, "mutations", mutation_stats(c));
    return v;
}

static int write_files(const struct corpus *c, struct err *e)
{
    char *path = path_join(c->o->out, "stats.json");
    json_t *v = stats(c);
    int rc = write_tasks(c, e) < 0 || write_lines(c, "train.jsonl", &c->train, e) < 0 ||
                     write_lines(c, "heldout.jsonl", &c->heldout, e) < 0 ||
                     write_lines(c, "prompts.jsonl", &c->prompts, e) < 0 ||
                     write_lines(c, "rejected.jsonl", &c->rejected, e) < 0 || json_write(path, v, e) < 0
                 ? -1
                 : 0;

    json_decref(v);
    free(path);
    return rc;
}

static void corpus_init(struct corpus *c, const struct corpus_options *o)
{
    *c = (struct corpus){.o = o};
    buf_init(&c->train, (size_t)4 << 30);
    buf_init(&c->heldout, (size_t)4 << 30);
    buf_init(&c->prompts, (size_t)4 << 30);
    buf_init(&c->rejected, (size_t)4 << 30);
    c->families = json_object(), c->strategies = json_object();
    c->reasons = json_object(), c->bugs = json_object();
}

static void corpus_free(struct corpus *c)
{
    buf_free(&c->train), buf_free(&c->heldout), buf_free(&c->prompts), buf_free(&c->rejected);
    json_decref(c->families), json_decref(c->strategies), json_decref(c->reasons), json_decref(c->bugs);
    json_decref(c->verdicts), json_decref(c->plan.rejected);
    arena_free(&c->arena);
}

int corpus_make(const struct corpus_options *o, struct corpus_stats *ret, struct err *e)
{
    struct corpus c;
    int rc;

    corpus_init(&c, o);
    rc = dir_make(o->out, e) < 0 || plan_make(&o->plan, &c.arena, &c.plan, e) < 0 ? -1 : 0;
    if (!rc && o->values)
        rc = values_write(&c.plan, o->values, e);
    if (!rc)
        list_jobs(&c);
    if (!rc && o->judge)
        rc = judge_jobs(&c, e);
    if (!rc)
        add_lines(&c);
    if (!rc)
        rc = write_files(&c, e);
    if (!rc)
        *ret = c.n;
    corpus_free(&c);
    return rc;
}
