/* stream.c - see stream.h. Reading order: stream_make at the end; a shard is drawn, verified, written. */
#include "synth/stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/listing.h"
#include "base/log.h"
#include "synth/card.h"
#include "synth/dag_draw.h"
#include "synth/ir/ast_mutate.h"
#include "synth/heldout.h"
#include "synth/program.h"
#include "synth/reason.h"
#include "synth/training_record.h"
#include "synth/rewrite.h"
#include "synth/surface/surface.h"
#include "synth/verify.h"
#include "synth/wording.h"
#include "synth/triviality.h"

#define MAX_DRAWS 20000
#define REWRITE_MEASURED 1.1 /* a measured pair is at least so far apart */

/* One record before its verdict is known. */
struct item {
    json_t *record;
    char *name, *task, *program; /* program NULL: nothing to verify */
    long index;
    bool held, verify;
    char *slow, *why; /* of a rewrite: the slow program, and what makes it so */
    const json_t *slow_verdict;
    bool refuted;    /* measured, the rewrite is not faster */
    char *mutant;    /* NULL, or the program with a bug */
    int bug;         /* its kind */
    json_t *repair, *review; /* NULL, or what the mutant's verdict made of it */
};

struct stream_shard {
    const struct stream_options *o;
    const struct dag_table *t;
    struct prompt_format prompt_format;
    int index;
    struct item *item;
    int n;
    json_t *refused, *strategies, *ops; /* counters */
    json_t *bugs; /* {"missing_sync":{"compile_error":1,"undetected":2}} */
    long verified, failed, unsaid, mutants, undetected, ir_mutants, ir_killed, refuted;
};

/* "What shape does this module return?", answered by the rows' rules. */
static json_t *stream_shape_messages(const struct dag *g, const char *task)
{
    static const char *const words[] = {"float32", "float16", "bfloat16", "int64"};
    const struct tdesc *t = &g->value[dag_result(g)].t;
    char *q = xasprintf("What are the shape and dtype of the tensor that this model returns for "
        "get_inputs()?\n\n```python\n%s```",
                        task);
    struct buf b;
    json_t *m = prompt_start(q);

    buf_init(&b, 4096);
    buf_addc(&b, '(');
    for (int d = 0; d < t->rank; d++)
        buf_addf(&b, "%s%d", d ? ", " : "", t->d[d]);
    buf_addf(&b, "%s), torch.%s", t->rank == 1 ? "," : "", words[t->dtype]);
    prompt_say(m, "assistant", b.p);
    buf_free(&b);
    free(q);
    return m;
}

/* A graph that is worth asking for; every refusal is counted. */
static int stream_draw_worthwhile(struct stream_shard *s, struct rng *r, struct dag *g, struct err *e)
{
    struct dag_limits l = {.l = {.max_numel = s->o->max_numel, .max_work = (int64_t)s->o->max_numel * 64,
                                 .dtypes = s->o->dtypes, .nice = s->o->style == PROMPT_PLAIN},
                           .min_ops = 1, .max_ops = s->o->max_ops, .anchors = 2};
    const char *why = "";

    for (int i = 0; i < MAX_DRAWS && why; i++) {
        dag_draw(s->t, r, &l, g);
        why = triviality_reason(g, r);
        if (why)
            json_count(s->refused, why, 1);
    }
    return why ? err_set(e, ERR_INPUT, "none of %d drawn tasks is worth asking for; the last: %s. Allow more operators "
                         "with --ops, or raise --max-elements", MAX_DRAWS, why) : 0;
}

static char *stream_file_of(struct stream_shard *s, const struct dag *g, const struct kernels *k, const struct afun *f,
                            const struct program_style *style);

/* The program with one edit of its tree; a train-side, verified program now and then. */
static void stream_draw_mutant(struct stream_shard *s, const struct dag *g, const struct kernels *k,
                               const struct afun *f, const struct program_style *style, struct rng *r, struct item *x)
{
    struct arena a = {0};
    struct afun *copy;

    if (!x->verify || x->held || x->slow || (double)draw_below(r, 1000000) >= s->o->mutants * 1e6)
        return;
    copy = ast_clone(&a, f);
    x->bug = ast_mutate_any(&a, r, copy);
    if (x->bug >= 0)
        x->mutant = stream_file_of(s, g, k, copy, style);
    arena_free(&a);
}

/* The same keys in every record: tables of records have columns. */
static json_t *stream_provenance(uint64_t seed, long index, const char *parent, const char *mutation)
{
    return json_pack("{s:s, s:I, s:I, s:s?, s:s?}", "generator", SYNTH_GENERATOR, "seed", (json_int_t)seed, "index",
                     (json_int_t)index, "parent", parent, "mutation", mutation);
}

/* The program's Python file in the corpus' language; NULL: it cannot be said there, or is too long. */
static char *stream_file_of(struct stream_shard *s, const struct dag *g, const struct kernels *k, const struct afun *f,
                            const struct program_style *style)
{
    struct buf b;
    char *program;

    buf_init(&b, BUF_MAX_TEXT);
    program_file(g, k, f, style, &b);
    program = record_in_dialect(&s->prompt_format, buf_detach(&b));
    if (program && s->o->max_program && (int)strlen(program) > s->o->max_program)
        free(program), program = NULL;
    if (!program)
        json_count(s->refused, "program too long, or not to be said in the dialect", 1);
    return program;
}

/* What one item is made of, while it is drawn. */
struct stream_drawn {
    struct dag g;
    struct kernels k, slow;
    enum fusion level;
    struct program_style style;
    struct afun *f;
    char *program, *slow_program;
    struct arena a;
};

/* Draws how a program is written. */
static void stream_draw_style(const struct stream_shard *s, struct rng *r, struct program_style *ret)
{
    *ret = (struct program_style){.sizes = (enum size_style)rng_below(r, 3)};
    if (s->o->style != PROMPT_FULL)
        return;
    ast_style_draw(r, &ret->c);
    ret->c.bare &= !s->prompt_format.formulas;
    ret->docstring = draw_below(r, 3) == 0;
    ret->reuse = draw_below(r, 2);
}

/* Graph, kernels and program; with a slower program beside it where pair says so and one is found. */
static int stream_draw_program(struct stream_shard *s, struct rng *r, bool pair, struct stream_drawn *d, struct err *e)
{
    for (int tries = 0; !d->program; tries++) {
        if (tries == MAX_DRAWS / 20)
            return err_set(e, ERR_INPUT, "no program of --max-program %d bytes after %d tries; raise it",
                           s->o->max_program, tries);
        do {
            if (stream_draw_worthwhile(s, r, &d->g, e) < 0)
                return -1;
            d->level = (enum fusion)rng_below(r, N_FUSIONS);
            fuse(&d->g, d->level, &d->a, &d->k);
        } while (fuse_schedule(&d->k, r) < 0);
        stream_draw_style(s, r, &d->style);
        if (pair && rewrite_find(&d->g, r, &d->a, &d->k, &d->level, &d->slow)) {
            struct afun *f = program_cuda(&d->g, &d->slow, &d->style, &d->a, e);
            d->slow_program = f ? stream_file_of(s, &d->g, &d->slow, f, &d->style) : NULL;
        }
        d->f = program_cuda(&d->g, &d->k, &d->style, &d->a, e);
        if (!d->f)
            return -1;
        if (s->prompt_format.formulas)
            wording_explain(&d->g, &d->a, d->f);
        d->program = stream_file_of(s, &d->g, &d->k, d->f, &d->style);
        if (!d->program)
            free(d->slow_program), d->slow_program = NULL;
    }
    return 0;
}

static json_t *stream_speed_json(const char *source, double slow_us, double fast_us)
{
    return json_pack("{s:s, s:f, s:f}", "source", source, "slow_us", slow_us, "fast_us", fast_us);
}

/* The dialogue that asks for a faster program; speeds in microseconds, measured or estimated. New. */
static json_t *stream_rewrite_messages(const struct item *x, const char *source, double slow_us, double fast_us)
{
    bool measured = !strcmp(source, "measured");
    char *speed = xasprintf("it takes %.3g us (%s), and %.3g us are possible", slow_us,
                            measured ? "measured" : "a static estimate", fast_us);
    json_t *m = record_rewrite(x->task, x->slow, speed, x->why, x->program);

    free(speed);
    return m;
}

/* How many simple mistakes the task's inputs tell from its answer; counted in the shard, too. New. */
static json_t *stream_kill_of(struct stream_shard *s, const struct dag *g, struct rng *r)
{
    struct triviality_kill k = triviality_kill_score(g, r);

    s->ir_mutants += k.mutants, s->ir_killed += k.killed;
    return json_pack("{s:i, s:i}", "mutants", k.mutants, "killed", k.killed);
}

/* The messages of a record of that kind. New. */
static json_t *stream_messages_of(struct stream_shard *s, const struct stream_drawn *d, struct item *x,
                                  const char *kind, const char *reason)
{
    json_t *inputs, *m;

    if (!strcmp(kind, "shape"))
        return stream_shape_messages(&d->g, x->task);
    if (!strcmp(kind, "rewrite"))
        return stream_rewrite_messages(x, "static", cost_of(&d->slow).us, cost_of(&d->k).us);
    inputs = record_inputs(&d->g);
    m = record_generate(&s->prompt_format, inputs, x->task, reason, x->program);
    json_decref(inputs);
    return m;
}

/* Makes x->record of a drawn program. */
static void stream_make_record(struct stream_shard *s, const struct stream_drawn *d, struct item *x, const char *kind,
                               const char *reason, const char *hash, struct rng *r)
{
    bool program = strcmp(kind, "shape") != 0;
    json_t *speed = strcmp(kind, "rewrite") ? json_null()
                                            : stream_speed_json("static", cost_of(&d->slow).us, cost_of(&d->k).us);

    x->record = json_pack("{s:s, s:s, s:o, s:o, s:o, s:n, s:o, s:i, s:o, s:o, s:s}", "id", x->name, "kind", kind,
                          "messages", stream_messages_of(s, d, x, kind, reason), "task",
                          record_task(&d->g, NULL, x->task, hash), "kernel",
                          program ? record_kernel(&d->k, d->level, x->program, &s->prompt_format) : json_null(),
                          "verdict", "provenance", stream_provenance(s->o->seed, x->index, NULL, NULL), "difficulty",
                          d->g.n_nodes + 2 * d->k.n, "speed", speed, "kill", stream_kill_of(s, &d->g, r), "split",
                          x->held ? "heldout" : "train");
    if (!program)
        free(x->program), x->program = NULL;
}

/* ---- tasks as people write them ---- */

static json_t *stream_names_json(const char *const name[], int n)
{
    json_t *a = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(a, json_string(name[i]));
    return a;
}

/* The record of a public task's program. New. */
static json_t *stream_surface_record(struct stream_shard *s, const struct surface *p, const struct item *x,
                                     const char *hash)
{
    json_t *task = json_pack("{s:s, s:o, s:o, s:s, s:[]}", "code", x->task, "ops", stream_names_json(p->op, p->n_ops),
                             "families", stream_names_json(p->family, p->n_ops), "graph_hash", hash, "inputs");
    json_t *kernel = json_pack("{s:s, s:s, s:s, s:s, s:i}", "lang", s->o->musa ? "musa" : "cuda", "code",
                               x->program, "strategy", "generic", "fusion", "maps", "kernels", p->n_kernels);

    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:n, s:o, s:i, s:n, s:n, s:s}", "id", x->name, "kind", "generate",
                     "messages", record_generate(&s->prompt_format, NULL, x->task, NULL, x->program), "task", task,
                     "kernel", kernel, "verdict", "provenance", stream_provenance(s->o->seed, x->index, NULL, NULL),
                     "difficulty", p->n_ops + 2 * p->n_kernels, "speed", "kill", "split",
                     x->held ? "heldout" : "train");
}

/* Draws an item of public style. */
static int stream_draw_surface_item(struct stream_shard *s, long index, struct item *ret, struct err *e)
{
    const struct surface_limits l = {.chains = s->o->max_ops > 1 && surface_is_chain(index, SURFACE_CHAINS)};
    struct surface p;
    char hash[17];
    struct rng r;

    for (uint64_t i = 0;; i++) {
        surface_draw(s->o->seed, (uint64_t)index + (i << 40), &l, &p);
        p.program = record_in_dialect(&s->prompt_format, p.program);
        if (p.program && (!s->o->max_program || (int)strlen(p.program) <= s->o->max_program))
            break;
        json_count(s->refused, "program too long, or not to be said in the dialect", 1);
        surface_free(&p);
        if (i == MAX_DRAWS / 20)
            return err_set(e, ERR_INPUT, "no program of --max-program %d bytes after %d tries; raise it",
                           s->o->max_program, (int)i);
    }
    rng_seed(&r, s->o->seed ^ 0x5eed, (uint64_t)index);
    snprintf(hash, sizeof hash, "%016" PRIx64, surface_hash(&p));
    *ret = (struct item){.index = index,
                         .name = xasprintf("public-%ld-%s", index, hash),
                         .task = xstrdup(p.task),
                         .program = xstrdup(p.program),
                         /* one task in fifty of a single operator is held out by its index */
                         .held = p.n_ops > 1 ? heldout_graph(surface_hash(&p)) : rng_below(&r, 50) == 0};
    ret->verify = (double)rng_below(&r, 1000000) < s->o->verify * 1e6;
    for (int i = 0; i < p.n_ops; i++)
        json_count(s->ops, p.op[i], 1);
    ret->record = stream_surface_record(s, &p, ret, hash);
    surface_free(&p);
    return 0;
}

/* Draws item 'index' of the stream: graph, schedule, program and its kind. */
static int stream_draw_item(struct stream_shard *s, long index, struct item *ret, struct err *e)
{
    static const char *const kinds[] = {"generate", "generate", "generate", "generate", "reason", "reason", "shape",
                                        "rewrite"};
    struct stream_drawn *d = xcalloc(1, sizeof *d);
    struct buf task, reason;
    struct rng r;
    char hash[17];
    const char *kind;

    rng_seed(&r, s->o->seed, (uint64_t)index);
    kind = kinds[rng_below(&r, sizeof kinds / sizeof *kinds)];
    if (stream_draw_program(s, &r, !strcmp(kind, "rewrite"), d, e) < 0) {
        arena_free(&d->a), free(d);
        return -1;
    }
    buf_init(&task, BUF_MAX_TEXT), buf_init(&reason, BUF_MAX_TEXT);
    program_task(&d->g, &d->style, &task);
    if (!strcmp(kind, "reason") && !reason_write(&d->g, &d->k, d->f, &reason))
        kind = "generate", s->unsaid++;
    if (!strcmp(kind, "rewrite") && !d->slow_program)
        kind = "generate";
    snprintf(hash, sizeof hash, "%016" PRIx64, dag_hash(&d->g, false));
    for (int i = 0; i < d->k.n; i++)
        json_count(s->strategies, d->k.k[i].s->name, 1);
    for (int n = 0; n < d->g.n_nodes; n++)
        json_count(s->ops, d->g.node[n].c.op->name, 1);
    *ret = (struct item){.index = index, .name = xasprintf("%s-%ld-%s", kind, index, hash), .task = buf_detach(&task),
                         .program = d->program, .held = heldout_graph(dag_hash(&d->g, false)), .slow = d->slow_program,
                         .why = d->slow_program ? rewrite_answer(&d->slow, &d->k) : NULL};
    ret->verify = strcmp(kind, "shape") && (double)rng_below(&r, 1000000) < s->o->verify * 1e6;
    stream_draw_mutant(s, &d->g, &d->k, d->f, &d->style, &r, ret);
    stream_make_record(s, d, ret, kind, reason.n ? reason.p : NULL, hash, &r);
    buf_free(&reason);
    arena_free(&d->a);
    free(d);
    return 0;
}

/* ---- verdicts ---- */

static void stream_count_bug(struct stream_shard *s, const char *name, const char *outcome)
{
    if (!json_object_get(s->bugs, name))
        json_object_set_new(s->bugs, name, json_object());
    json_count(json_object_get(s->bugs, name), outcome, 1);
}

/* A repair or review record of an item's bug, new; takes messages. */
static json_t *stream_derived(const struct stream_shard *s, const struct item *x, const char *kind, json_t *messages,
                              const json_t *verdict)
{
    char *id = xasprintf("%s-%s-%s", kind, x->name, x->bug < 0 ? "none" : ast_mutation_name(x->bug));
    json_t *v = json_pack("{s:s, s:s, s:o, s:O, s:O, s:o, s:o, s:O, s:n, s:O, s:s}", "id", id, "kind", kind, "messages",
                          messages, "task", json_object_get(x->record, "task"), "kernel",
                          json_object_get(x->record, "kernel"), "verdict", record_brief(verdict), "provenance",
                          stream_provenance(s->o->seed, x->index, x->name,
                                            x->bug < 0 ? "none" : ast_mutation_name(x->bug)),
                          "difficulty", json_object_get(x->record, "difficulty"), "speed", "kill",
                          json_object_get(x->record, "kill"), "split", "train");

    free(id);
    return v;
}

/* Task, broken program, what the judge said, the program; and a question whether the broken one is right. */
static void stream_derive_records(const struct stream_shard *s, struct item *x, const json_t *verdict)
{
    const char *feedback = json_str(verdict, "feedback", ""), *why = ast_mutation_reason(x->bug);
    char *review = xasprintf("No: %s. The judge says: %s", why, feedback);

    x->repair = stream_derived(s, x, "repair",
                               record_repair(&s->prompt_format, x->task, x->mutant, feedback, why, x->program),
                               verdict);
    x->review = stream_derived(s, x, "review", record_review(x->task, x->mutant, review), verdict);
    free(review);
}

/* The same question about a program that passed: reviewers must not learn that every program is wrong. */
static void stream_derive_praise(const struct stream_shard *s, struct item *x, const json_t *verdict)
{
    static const char yes[] = "Yes. The judge finds nothing: every trial matches, and its own kernels do the work.";

    x->bug = -1;
    x->review = stream_derived(s, x, "review", record_review(x->task, x->program, yes), verdict);
}

/* Counts what the judge said of a broken program, and makes records of one that it rejected by running it. */
static void stream_judge_mutant(struct stream_shard *s, struct item *x, const json_t *verdict)
{
    const char *status = json_str(verdict, "status", ""), *category = json_str(verdict, "category", "");

    s->mutants++;
    if (!strcmp(status, "passed"))
        s->undetected++;
    stream_count_bug(s, ast_mutation_name(x->bug), strcmp(status, "passed") ? category : "undetected");
    if (!strcmp(category, "compile_error") || !strcmp(category, "runtime_error") || !strcmp(category,
        "correctness_error"))
        stream_derive_records(s, x, verdict);
}

/* A device's times take the place of the estimate; a rewrite that is not faster there is no record. */
static void stream_judge_rewrite(struct stream_shard *s, struct item *x, const json_t *verdict)
{
    const json_t *slow = json_object_get(x->slow_verdict, "performance");
    const json_t *fast = json_object_get(verdict, "performance");
    double slow_us = json_f64(slow, "candidate_ms", 0) * 1e3, fast_us = json_f64(fast, "candidate_ms", 0) * 1e3;

    if (strcmp(json_str(x->slow_verdict, "status", ""), "passed"))
        json_object_set_new(x->record, "verdict", record_brief(x->slow_verdict));
    if (!(slow_us > 0) || !(fast_us > 0))
        return;
    x->refuted = slow_us < REWRITE_MEASURED * fast_us;
    s->refuted += x->refuted;
    json_object_set_new(x->record, "messages", stream_rewrite_messages(x, "measured", slow_us, fast_us));
    json_object_set_new(x->record, "speed", stream_speed_json("measured", slow_us, fast_us));
}

enum stream_part { PROGRAM, SLOW, MUTANT, N_PARTS };

static const char *stream_part_of(const struct item *x, int part)
{
    return part == MUTANT ? x->mutant : !x->verify ? NULL : part == SLOW ? x->slow : x->program;
}

/* Notes the verdict of an item's program, slow program or mutant. */
static void stream_take_verdict(struct stream_shard *s, struct item *x, int part, const json_t *verdict)
{
    bool good = !strcmp(json_str(verdict, "status", ""), "passed");

    if (part == SLOW) {
        x->slow_verdict = verdict;
        s->verified++, s->failed += !good;
    } else if (part == MUTANT) {
        if (strcmp(json_str(verdict, "status", ""), "infra"))
            stream_judge_mutant(s, x, verdict);
    } else {
        json_object_set_new(x->record, "verdict", record_brief(verdict));
        s->verified++, s->failed += !good;
        if (good && x->slow)
            stream_judge_rewrite(s, x, verdict);
        else if (good && !x->held && !x->mutant)
            stream_derive_praise(s, x, verdict);
    }
}

/* Has a shard's programs judged. */
static int stream_verify_shard(struct stream_shard *s, struct err *e)
{
    static const int order[N_PARTS] = {SLOW, PROGRAM, MUTANT}; /* a rewrite knows its slow program's verdict first */
    struct verify_item *v = xcalloc((size_t)s->n * N_PARTS + 1, sizeof *v);
    char *log = xasprintf("%s/verdicts-%05d.log.jsonl", s->o->out, s->index);
    struct verify_options o = {.jobs = s->o->jobs, .trials = s->o->trials, .backend = s->o->backend, .log = log};
    json_t *verdicts = NULL;
    int n = 0, rc = 0;

    for (int p = 0; p < N_PARTS; p++)
        for (int i = 0; i < s->n; i++)
            if (stream_part_of(&s->item[i], order[p]))
                v[n++] = (struct verify_item){.name = s->item[i].name, .task = s->item[i].task,
                                                .program = stream_part_of(&s->item[i], order[p])};
    if (n)
        rc = verify_all(&o, v, n, &verdicts, e);
    n = 0;
    for (int p = 0; p < N_PARTS && !rc; p++)
        for (int i = 0; i < s->n; i++)
            if (stream_part_of(&s->item[i], order[p]))
                stream_take_verdict(s, &s->item[i], order[p], json_array_get(verdicts, (size_t)n++));
    for (int i = 0; i < s->n; i++)
        s->item[i].slow_verdict = NULL;
    json_decref(verdicts);
    free(v), free(log);
    return rc;
}

static bool stream_failed(const struct item *x)
{
    const json_t *v = json_object_get(x->record, "verdict");

    return json_is_object(v) && strcmp(json_str(v, "status", ""), "passed");
}

/* ---- files ---- */

/* data/NAME-00000.jsonl; owned. */
static char *stream_split_name(const char *name, int index)
{
    return xasprintf("data/%s-%05d.jsonl", name, index);
}

/* The same, in the folder. */
static char *stream_split_path(const struct stream_options *o, const char *name, int index)
{
    return xasprintf("%s/data/%s-%05d.jsonl", o->out, name, index);
}

/* Its hash goes into sums, by which a later call knows that the file is whole. */
static int stream_write_split(const struct stream_shard *s, const char *name, int which, json_t *sums, struct err *e)
{
    char *file = stream_split_name(name, s->index), hex[65];
    struct buf b;
    int rc;

    buf_init(&b, (size_t)1 << 40);
    for (int i = 0; i < s->n; i++)
        if ((s->item[i].refuted ? 3 : stream_failed(&s->item[i]) ? 2 : s->item[i].held ? 1 : 0) == which) {
            json_line(&b, s->item[i].record);
            if (which == 0)
                json_line(&b, s->item[i].repair), json_line(&b, s->item[i].review);
        }
    rc = which == 2 && !b.n ? 0 : listing_replace(s->o->out, file, b.p, b.n, e);
    sha256_hex(b.p, b.n, hex);
    json_object_set_new(sums, name, json_string(hex));
    buf_free(&b);
    free(file);
    return rc;
}

/* Counts a record by split, kind and difficulty. */
static void stream_count_record(const json_t *record, json_t *kinds, json_t *difficulty)
{
    char key[64];

    if (!record)
        return;
    snprintf(key, sizeof key, "%s %s", json_str(record, "split", ""), json_str(record, "kind", ""));
    json_count(kinds, key, 1);
    snprintf(key, sizeof key, "%lld", (long long)json_i64(record, "difficulty", 0));
    json_count(difficulty, key, 1);
}

/* The statistics are written last: they say that the shard is there. */
static int stream_write_stats(const struct stream_shard *s, const json_t *v, struct err *e)
{
    char *name = xasprintf("stats/%05d.json", s->index), *text = json_file_text(name, v, e);
    int rc = text ? listing_replace(s->o->out, name, text, strlen(text), e) : -1;

    free(name), free(text);
    return rc;
}

/* Writes a shard's splits and statistics. */
static int stream_write_shard(const struct stream_shard *s, struct err *e)
{
    json_t *kinds = json_object(), *difficulty = json_object(), *sums = json_object();

    json_t *v = json_pack("{s:i, s:I, s:I, s:I, s:O, s:O, s:O, s:I, s:I, s:O, s:I, s:I, s:I}", "records", s->n,
                          "verified",
        (json_int_t)s->verified,
        "failed",
                          (json_int_t)s->failed, "reasons_without_source", (json_int_t)s->unsaid, "refused", s->refused,
                          "schedules", s->strategies, "operators", s->ops, "mutants", (json_int_t)s->mutants,
                          "undetected", (json_int_t)s->undetected, "mutations", s->bugs, "ir_mutants",
                          (json_int_t)s->ir_mutants, "ir_killed", (json_int_t)s->ir_killed, "rewrites_refuted",
                          (json_int_t)s->refuted);
    int rc;

    for (int i = 0; i < s->n; i++)
        if (!stream_failed(&s->item[i]) && !s->item[i].refuted) {
            stream_count_record(s->item[i].record, kinds, difficulty);
            stream_count_record(s->item[i].repair, kinds, difficulty),
                stream_count_record(s->item[i].review, kinds, difficulty);
        }
    json_object_set_new(v, "kinds", kinds), json_object_set_new(v, "difficulty", difficulty);
    rc = stream_write_split(s, "train", 0, sums, e) < 0 || stream_write_split(s, "heldout", 1, sums, e) < 0 ||
                 stream_write_split(s, "failed", 2, sums, e) < 0
             ? -1
             : 0;
    json_object_set_new(v, "sha256", sums);
    if (rc == 0)
        rc = stream_write_stats(s, v, e);
    json_decref(v);
    return rc;
}

static void stream_free_shard(struct stream_shard *s)
{
    for (int i = 0; i < s->n; i++) {
        json_decref(s->item[i].record);
        json_decref(s->item[i].repair), json_decref(s->item[i].review);
        free(s->item[i].name), free(s->item[i].task), free(s->item[i].program), free(s->item[i].mutant);
        free(s->item[i].slow), free(s->item[i].why);
    }
    free(s->item);
    json_decref(s->refused), json_decref(s->strategies), json_decref(s->ops), json_decref(s->bugs);
}

/* The sum of an object's counters. */
static long stream_total(const json_t *counters)
{
    const char *key;
    json_t *v;
    long n = 0;

    json_object_foreach((json_t *)(uintptr_t)counters, key, v)
        n += (long)json_integer_value(v);
    return n;
}

/* Draws, judges and writes one shard, unless it is there. */
static int stream_make_shard(const struct stream_options *o, const struct dag_table *t, int index,
                             struct stream_stats *n,
    struct err *e)
{
    long first = (long)index * o->shard_size, last = first + o->shard_size < o->records ? first + o->shard_size :
        o->records;
    struct stream_shard s = {.o = o, .t = t, .index = index,
                             .prompt_format = {.style = o->style, .musa = o->musa, .wordings = o->wordings,
                                               .formulas = o->formulas},
                             .refused = json_object(),
                             .strategies = json_object(), .ops = json_object(), .bugs = json_object()};
    int rc = 0;

    s.item = xcalloc((size_t)(last - first), sizeof *s.item);
    for (long i = first; i < last && !rc; i++) {
        rc = stop_requested() ? -1 : (o->public ? stream_draw_surface_item : stream_draw_item)(&s, i, &s.item[s.n], e);
        s.n += rc == 0;
    }
    if (!rc)
        rc = stream_verify_shard(&s, e);
    if (rc && stop_requested())
        rc = err_set(e, ERR_STOP, "stopped; the same command continues after %ld whole shards",
                     n->shards + n->kept_before);
    if (!rc)
        rc = stream_write_shard(&s, e);
    n->records += s.n, n->shards++, n->refused += stream_total(s.refused), n->verified += s.verified,
        n->failed += s.failed;
    stream_free_shard(&s);
    return rc;
}

/* Is the split's file what was written? A part that had no line ("failed") has no file. */
static bool stream_split_is_whole(const struct stream_options *o, const char *name, int index, const char *want)
{
    char *path = stream_split_path(o, name, index), hex[65];
    struct buf b;
    bool whole;

    buf_init(&b, (size_t)1 << 40);
    whole = !file_exists(path) || file_read(path, &b, NULL) == 0;
    sha256_hex(b.p, b.n, hex);
    buf_free(&b);
    free(path);
    return whole && !strcmp(hex, want);
}

/* True if the shard's statistics are there: it is complete. */
static bool stream_is_listed(const struct stream_options *o, int index)
{
    char *path = xasprintf("%s/stats/%05d.json", o->out, index);
    bool there = file_exists(path);

    free(path);
    return there;
}

/* The shard is there, and whole: what its statistics say of each split. Those of older versions say nothing. */
static bool stream_is_made(const struct stream_options *o, int index)
{
    char *path = xasprintf("%s/stats/%05d.json", o->out, index);
    json_t *stats = file_exists(path) ? json_read(path, NULL) : NULL, *sum;
    bool made = stats != NULL;
    const char *name;

    json_object_foreach(json_object_get(stats, "sha256"), name, sum)
        made = made && stream_split_is_whole(o, name, index, json_string_value(sum));
    if (stats && !made)
        log_warn("shard %d of '%s' is not what was written; it is made again", index, o->out);
    json_decref(stats);
    free(path);
    return made;
}

/* Adds what a shard's statistics say of its files. */
static void stream_list_shard(const struct stream_options *o, int index, json_t *hashes)
{
    char *path = xasprintf("%s/stats/%05d.json", o->out, index);
    json_t *stats = json_read(path, NULL), *sum;
    const char *name;

    json_object_foreach(json_object_get(stats, "sha256"), name, sum) {
        char *file = stream_split_path(o, name, index), *at = stream_split_name(name, index);

        if (file_exists(file))
            json_object_set(hashes, at, sum);
        free(file), free(at);
    }
    json_decref(stats);
    free(path);
}

/* Of the finished corpus: its shards are listed, so that whoever reads them knows that they are whole. */
static int stream_finish(const struct stream_options *o, long shards, struct err *e)
{
    json_t *hashes = json_object();
    int rc = card_write(o->out, shards, hashes, e);

    for (int i = 0; i < shards; i++)
        stream_list_shard(o, i, hashes);
    if (rc == 0)
        rc = listing_put(o->out, hashes, e);
    json_decref(hashes);
    return rc;
}

/* Parts of one corpus share the folder; a process that makes all of it has it alone. */
static int stream_make_folders(const struct stream_options *o, int *ret_lock, struct err *e)
{
    char *data = path_join(o->out, "data"), *stats = path_join(o->out, "stats");
    int rc = folder_claim(o->out, "this corpus", e) < 0 ? -1
             : folder_check_other(o->out, "stats.json", "train.jsonl", e);

    if (rc == 0 && o->processes == 1)
        rc = folder_lock(o->out, "musacoder synth", ret_lock, e);
    if (rc == 0)
        rc = dir_make(data, e) < 0 || dir_make(stats, e) < 0 ? -1 : 0;
    free(data), free(stats);
    return rc;
}

/* What shapes the records; which process makes them, and how many at once, does not. */
static json_t *stream_claim_of(const struct stream_options *o)
{
    return json_pack("{s:s, s:I, s:i, s:I, s:i, s:i, s:i, s:f, s:f, s:i, s:s, s:s, s:s, s:s, s:i, s:i, s:b, s:b, s:O?}",
                     "generator",
                     SYNTH_GENERATOR,
                     "records", (json_int_t)o->records, "shard-size", o->shard_size, "seed", (json_int_t)o->seed,
                     "max-elements", o->max_numel, "max-ops", o->max_ops, "dtypes", (int)o->dtypes, "verify-share",
                     o->verify, "mutant-share", o->mutants, "trials", o->trials, "backend",
                     o->backend ? o->backend : "sim", "style", prompt_style_name(o->style), "ops",
                     o->ops_text ? o->ops_text : "all", "dialect", o->musa ? "musa" : "cuda", "max-program",
                     o->max_program, "wordings", o->wordings, "formulas", o->formulas, "public", o->public,
                     "family-weights", o->weights);
}

/* The folder holds shards of these options or none: others would be kept silently. */
static int stream_claim(const struct stream_options *o, struct err *e)
{
    char *path = path_join(o->out, "options.json");
    json_t *mine = stream_claim_of(o), *theirs = file_exists(path) ? json_read(path, e) : NULL;
    const char *key;
    json_t *v;
    int rc = folder_check_claim(o->out, "options.json", (const char *const[]){"data", "stats", NULL}, e);

    if (file_exists(path) && !theirs)
        rc = -1;
    else if (rc == 0 && !theirs)
        rc = json_write(path, mine, e);
    json_object_foreach(mine, key, v)
        if (!rc && theirs && !json_equal(v, json_object_get(theirs, key))) {
            char *now = json_text(v), *then = json_text(json_object_get(theirs, key));
            rc = json_object_get(theirs, key)
                     ? err_set(e, ERR_INPUT, "'%s' holds records made with %s %s, not %s; give the same options or "
                               "another --out", o->out, key, then, now)
                     : err_set(e, ERR_INPUT, "'%s' holds records of another version of musacoder, which knew no %s; "
                               "continue with that one, or name another --out", o->out, key);
            free(now), free(then);
        }
    json_decref(mine), json_decref(theirs);
    free(path);
    return rc;
}

static bool stream_all_listed(const struct stream_options *o, long shards)
{
    bool all = true;

    for (int i = 0; i < shards; i++)
        all = all && stream_is_listed(o, i);
    return all;
}

int stream_make(const struct stream_options *o, struct stream_stats *ret, struct err *e)
{
    struct dag_table *t = dag_table_weighted(o->ops, o->weights);
    long shards = (o->records + o->shard_size - 1) / o->shard_size;
    struct stream_stats n = {0};
    struct progress p;
    int lock = -1, rc = stream_make_folders(o, &lock, e) < 0 || stream_claim(o, e) < 0 ? -1 : 0;

    if (!rc && !stream_all_listed(o, shards))
        rc = listing_put(o->out, NULL, e);

    progress_start(&p, "shards", 0, (uint64_t)((shards - o->process + o->processes - 1) / o->processes));
    for (int i = o->process; i < shards && !rc; i += o->processes) {
        if (stream_is_made(o, i))
            n.kept_before++;
        else
            rc = stream_make_shard(o, t, i, &n, e);
        progress_at(&p, (uint64_t)(n.shards + n.kept_before));
    }
    progress_end(&p);
    dag_table_free(t);
    if (!rc && stream_all_listed(o, shards)) /* the last of several processes */
        rc = stream_finish(o, shards, e);
    if (lock >= 0)
        close(lock);
    *ret = n;
    return rc;
}
