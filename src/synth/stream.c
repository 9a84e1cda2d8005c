/* stream.c - see stream.h. Reading order: stream_make at the end; a shard is drawn, verified, written. */
#include "synth/stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "synth/card.h"
#include "synth/dag_draw.h"
#include "synth/ir/ast_mutate.h"
#include "synth/heldout.h"
#include "synth/program.h"
#include "synth/reason.h"
#include "synth/record.h"
#include "synth/verify.h"
#include "synth/worth.h"

/* One record before its verdict is known. */
struct item {
    json_t *record;
    char *name, *task, *program; /* program NULL: nothing to verify */
    long index;
    bool held, verify;
    char *mutant;    /* NULL, or the program with a bug */
    int bug;         /* its kind */
    json_t *repair, *review; /* NULL, or what the mutant's verdict made of it */
};

struct shard {
    const struct stream_options *o;
    const struct dag_table *t;
    struct voice voice;
    int index;
    struct item *item;
    int n;
    json_t *refused, *strategies, *ops; /* counters */
    json_t *bugs; /* {"missing_sync":{"compile_error":1,"undetected":2}} */
    long verified, failed, unsaid, mutants, undetected;
};

static void count(json_t *o, const char *key)
{
    json_object_set_new(o, key, json_integer(json_i64(o, key, 0) + 1));
}

/* "What shape does this module return?", answered by the rows' rules. */
static json_t *shape_messages(const struct dag *g, const char *task)
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
static void draw_worthwhile(struct shard *s, struct rng *r, struct dag *g)
{
    struct dag_limits l = {.l = {.max_numel = s->o->max_numel, .max_work = (int64_t)s->o->max_numel * 64,
                                 .dtypes = s->o->dtypes, .nice = s->o->style == PROMPT_PLAIN},
                           .min_ops = 1, .max_ops = s->o->max_ops, .anchors = 2};
    const char *why;

    do {
        dag_draw(s->t, r, &l, g);
        why = worth_reason(g, r);
        if (why)
            count(s->refused, why);
    } while (why);
}

/* The program with one edit of its tree; a train-side, verified program now and then. */
static void draw_mutant(struct shard *s, const struct dag *g, const struct kernels *k, const struct afun *f,
                        const struct program_style *style, struct rng *r, struct item *x)
{
    struct arena a = {0};
    struct afun *copy;
    struct buf b;

    if (!x->verify || x->held || (double)draw_below(r, 1000000) >= s->o->mutants * 1e6)
        return;
    copy = ast_clone(&a, f);
    x->bug = ast_mutate_any(&a, r, copy);
    if (x->bug >= 0) {
        buf_init(&b, BUF_MAX_TEXT);
        program_file(g, k, copy, style, &b);
        x->mutant = buf_detach(&b);
    }
    arena_free(&a);
}

/* The same keys in every record: tables of records have columns. */
static json_t *provenance(uint64_t seed, long index, const char *parent, const char *mutation)
{
    return json_pack("{s:s, s:I, s:I, s:s?, s:s?}", "generator", SYNTH_GENERATOR, "seed", (json_int_t)seed, "index",
                     (json_int_t)index, "parent", parent, "mutation", mutation);
}

static int draw_item(struct shard *s, long index, struct item *ret, struct err *e)
{
    static const char *const kinds[] = {"generate", "generate", "generate", "generate", "reason", "reason", "shape"};
    struct arena a = {0};
    struct kernels *k = arena_alloc(&a, sizeof *k);
    struct dag *g = arena_alloc(&a, sizeof *g);
    struct program_style style;
    struct afun *f;
    struct buf task, program, reason;
    struct rng r;
    uint64_t hash;
    char text[17], id[64];
    const char *kind;
    json_t *messages;
    enum fusion level;

    rng_seed(&r, s->o->seed, (uint64_t)index);
    do {
        draw_worthwhile(s, &r, g);
        level = (enum fusion)rng_below(&r, N_FUSIONS);
        fuse(g, level, &a, k);
    } while (fuse_schedule(k, &r) < 0);
    style = (struct program_style){.sizes = (enum size_style)rng_below(&r, 3)};
    if (s->o->style == PROMPT_FULL) {
        ast_style_draw(&r, &style.c);
        style.docstring = draw_below(&r, 3) == 0;
        style.reuse = draw_below(&r, 2);
    }
    kind = kinds[rng_below(&r, sizeof kinds / sizeof *kinds)];
    f = program_cuda(g, k, &style, &a, e);
    if (!f) {
        arena_free(&a);
        return -1;
    }
    buf_init(&task, BUF_MAX_TEXT), buf_init(&program, BUF_MAX_TEXT), buf_init(&reason, BUF_MAX_TEXT);
    program_task(g, &style, &task);
    program_file(g, k, f, &style, &program);
    if (!strcmp(kind, "reason") && !reason_write(g, k, f, &reason))
        kind = "generate", s->unsaid++;
    hash = dag_hash(g, false);
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    snprintf(id, sizeof id, "%s-%ld-%s", kind, index, text);
    for (int i = 0; i < k->n; i++)
        count(s->strategies, k->k[i].s->name);
    for (int n = 0; n < g->n_nodes; n++)
        count(s->ops, g->node[n].c.op->name);
    if (strcmp(kind, "shape")) {
        json_t *inputs = record_inputs(g);
        messages = record_generate(&s->voice, inputs, task.p, reason.n ? reason.p : NULL, program.p);
        json_decref(inputs);
    } else {
        messages = shape_messages(g, task.p);
    }
    *ret = (struct item){.index = index, .name = xstrdup(id), .task = xstrdup(task.p),
                         .program = strcmp(kind, "shape") ? xstrdup(program.p) : NULL, .held = heldout_graph(hash)};
    ret->verify = ret->program && (double)rng_below(&r, 1000000) < s->o->verify * 1e6;
    draw_mutant(s, g, k, f, &style, &r, ret);
    ret->record = json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:n, s:o, s:i, s:s}", "id", id, "kind", kind, "messages",
        messages, "task",
        record_task(g, NULL, task.p, text), "kernel",
        strcmp(kind, "shape") ? record_kernel(k, level, program.p, &s->voice) : json_null(),
        "verdict", "provenance", provenance(s->o->seed, index, NULL, NULL), "difficulty",
        g->n_nodes + 2 * k->n, "split", ret->held ? "heldout" : "train");
    buf_free(&task), buf_free(&program), buf_free(&reason);
    arena_free(&a);
    return 0;
}

/* ---- verdicts ---- */

static void count_bug(struct shard *s, const char *name, const char *outcome)
{
    if (!json_object_get(s->bugs, name))
        json_object_set_new(s->bugs, name, json_object());
    count(json_object_get(s->bugs, name), outcome);
}

static json_t *derived(const struct shard *s, const struct item *x, const char *kind, json_t *messages,
                       const json_t *verdict)
{
    char *id = xasprintf("%s-%s-%s", kind, x->name, x->bug < 0 ? "none" : ast_mutation_name(x->bug));
    json_t *v = json_pack("{s:s, s:s, s:o, s:O, s:O, s:o, s:o, s:O, s:s}", "id", id, "kind", kind, "messages", messages,
                          "task", json_object_get(x->record, "task"), "kernel", json_object_get(x->record, "kernel"),
                          "verdict", record_brief(verdict), "provenance",
                          provenance(s->o->seed, x->index, x->name, x->bug < 0 ? "none" : ast_mutation_name(x->bug)),
                          "difficulty", json_object_get(x->record, "difficulty"), "split", "train");

    free(id);
    return v;
}

/* Task, broken program, what the judge said, the program; and a question whether the broken one is right. */
static void derive_records(const struct shard *s, struct item *x, const json_t *verdict)
{
    const char *feedback = json_str(verdict, "feedback", ""), *why = ast_mutation_reason(x->bug);
    char *review = xasprintf("No: %s. The judge says: %s", why, feedback);

    x->repair = derived(s, x, "repair", record_repair(&s->voice, x->task, x->mutant, feedback, why, x->program),
                        verdict);
    x->review = derived(s, x, "review", record_review(x->task, x->mutant, review), verdict);
    free(review);
}

/* The same question about a program that passed: reviewers must not learn that every program is wrong. */
static void derive_praise(const struct shard *s, struct item *x, const json_t *verdict)
{
    static const char yes[] = "Yes. The judge finds nothing: every trial matches, and its own kernels do the work.";

    x->bug = -1;
    x->review = derived(s, x, "review", record_review(x->task, x->program, yes), verdict);
}

static void judge_mutant(struct shard *s, struct item *x, const json_t *verdict)
{
    const char *status = json_str(verdict, "status", ""), *category = json_str(verdict, "category", "");

    s->mutants++;
    if (!strcmp(status, "passed"))
        s->undetected++;
    count_bug(s, ast_mutation_name(x->bug), strcmp(status, "passed") ? category : "undetected");
    if (!strcmp(category, "compile_error") || !strcmp(category, "runtime_error") || !strcmp(category,
        "correctness_error"))
        derive_records(s, x, verdict);
}

static int verify_shard(struct shard *s, struct err *e)
{
    struct verify_item *v = xcalloc((size_t)s->n * 2 + 1, sizeof *v);
    char *journal = xasprintf("%s/verdicts-%05d.log.jsonl", s->o->out, s->index);
    struct verify_options o = {.jobs = s->o->jobs, .trials = s->o->trials, .backend = s->o->backend, .journal =
        journal};
    int *of = xcalloc((size_t)s->n * 2 + 1, sizeof *of), n = 0, programs, rc = 0;
    json_t *verdicts = NULL;

    for (int i = 0; i < s->n; i++)
        if (s->item[i].verify)
            of[n] = i, v[n++] = (struct verify_item){s->item[i].name, s->item[i].task, s->item[i].program};
    programs = n;
    for (int i = 0; i < s->n; i++)
        if (s->item[i].mutant)
            of[n] = i, v[n++] = (struct verify_item){s->item[i].name, s->item[i].task, s->item[i].mutant};
    if (n)
        rc = verify_all(&o, v, n, &verdicts, e);
    for (int i = programs; i < n && !rc; i++)
        if (!strcmp(json_str(json_array_get(verdicts, (size_t)i), "status", ""), "infra"))
            continue;
        else
            judge_mutant(s, &s->item[of[i]], json_array_get(verdicts, (size_t)i));
    for (int i = 0; i < programs && !rc; i++) {
        const json_t *verdict = json_array_get(verdicts, (size_t)i);
        json_object_set_new(s->item[of[i]].record, "verdict", record_brief(verdict));
        if (!s->item[of[i]].held && !s->item[of[i]].mutant && !strcmp(json_str(verdict, "status", ""), "passed"))
            derive_praise(s, &s->item[of[i]], verdict);
        s->verified++, s->failed += strcmp(json_str(verdict, "status", ""), "passed") != 0;
    }
    json_decref(verdicts);
    free(v), free(of), free(journal);
    return rc;
}

static bool failed(const struct item *x)
{
    const json_t *v = json_object_get(x->record, "verdict");

    return json_is_object(v) && strcmp(json_str(v, "status", ""), "passed");
}

/* ---- files ---- */

static void add_line(struct buf *b, const json_t *v)
{
    char *text = v ? json_text(v) : NULL;

    if (text)
        buf_adds(b, text), buf_addc(b, '\n');
    free(text);
}

static int write_split(const struct shard *s, const char *name, int which, struct err *e)
{
    char *path = xasprintf("%s/data/%s-%05d.jsonl", s->o->out, name, s->index);
    struct buf b;
    int rc;

    buf_init(&b, (size_t)1 << 30);
    for (int i = 0; i < s->n; i++)
        if ((failed(&s->item[i]) ? 2 : s->item[i].held ? 1 : 0) == which) {
            add_line(&b, s->item[i].record);
            if (which == 0)
                add_line(&b, s->item[i].repair), add_line(&b, s->item[i].review);
        }
    rc = which == 2 && !b.n ? 0 : file_write(path, b.p, b.n, e);
    buf_free(&b);
    free(path);
    return rc;
}

static void count_record(const json_t *record, json_t *kinds, json_t *difficulty)
{
    char key[64];

    if (!record)
        return;
    snprintf(key, sizeof key, "%s %s", json_str(record, "split", ""), json_str(record, "kind", ""));
    count(kinds, key);
    snprintf(key, sizeof key, "%lld", (long long)json_i64(record, "difficulty", 0));
    count(difficulty, key);
}

static int write_shard(const struct shard *s, struct err *e)
{
    json_t *kinds = json_object(), *difficulty = json_object();

    char *path = xasprintf("%s/stats/%05d.json", s->o->out, s->index);
    json_t *v = json_pack("{s:i, s:I, s:I, s:I, s:O, s:O, s:O, s:I, s:I, s:O}", "records", s->n, "verified",
        (json_int_t)s->verified,
        "failed",
                          (json_int_t)s->failed, "reasons_without_source", (json_int_t)s->unsaid, "refused", s->refused,
                          "schedules", s->strategies, "operators", s->ops, "mutants", (json_int_t)s->mutants,
                          "undetected", (json_int_t)s->undetected, "mutations", s->bugs);
    int rc;

    for (int i = 0; i < s->n; i++)
        if (!failed(&s->item[i])) {
            count_record(s->item[i].record, kinds, difficulty);
            count_record(s->item[i].repair, kinds, difficulty), count_record(s->item[i].review, kinds, difficulty);
        }
    json_object_set_new(v, "kinds", kinds), json_object_set_new(v, "difficulty", difficulty);
    rc = write_split(s, "train", 0, e) < 0 || write_split(s, "heldout", 1, e) < 0 || write_split(s, "failed", 2,
        e) < 0 ||
                     json_write(path, v, e) < 0
                 ? -1
                 : 0;

    json_decref(v);
    free(path);
    return rc;
}

static void free_shard(struct shard *s)
{
    for (int i = 0; i < s->n; i++) {
        json_decref(s->item[i].record);
        json_decref(s->item[i].repair), json_decref(s->item[i].review);
        free(s->item[i].name), free(s->item[i].task), free(s->item[i].program), free(s->item[i].mutant);
    }
    free(s->item);
    json_decref(s->refused), json_decref(s->strategies), json_decref(s->ops), json_decref(s->bugs);
}

static long total(const json_t *counters)
{
    const char *key;
    json_t *v;
    long n = 0;

    json_object_foreach((json_t *)(uintptr_t)counters, key, v)
        n += (long)json_integer_value(v);
    return n;
}

static int make_shard(const struct stream_options *o, const struct dag_table *t, int index, struct stream_stats *n,
    struct err *e)
{
    long first = (long)index * o->shard_size, last = first + o->shard_size < o->records ? first + o->shard_size :
        o->records;
    struct shard s = {.o = o, .t = t, .voice = {.style = o->style}, .index = index, .refused = json_object(),
                      .strategies = json_object(), .ops = json_object(), .bugs = json_object()};
    int rc = 0;

    s.item = xcalloc((size_t)(last - first), sizeof *s.item);
    for (long i = first; i < last && !rc; i++) {
        rc = stop_requested() ? -1 : draw_item(&s, i, &s.item[s.n], e);
        s.n += rc == 0;
    }
    if (!rc)
        rc = verify_shard(&s, e);
    if (rc && stop_requested())
        rc = err_set(e, ERR_STOP, "stopped; the same command continues after %ld whole shards", n->shards + n->kept_before);
    if (!rc)
        rc = write_shard(&s, e);
    n->records += s.n, n->shards++, n->refused += total(s.refused), n->verified += s.verified, n->failed += s.failed;
    free_shard(&s);
    return rc;
}

static bool is_made(const struct stream_options *o, int index)
{
    char *path = xasprintf("%s/stats/%05d.json", o->out, index);
    bool made = file_exists(path);

    free(path);
    return made;
}

static int make_folders(const struct stream_options *o, struct err *e)
{
    char *data = path_join(o->out, "data"), *stats = path_join(o->out, "stats");
    int rc = dir_make(data, e) < 0 || dir_make(stats, e) < 0 ? -1 : 0;

    free(data), free(stats);
    return rc;
}

/* What shapes the records; which process makes them, and how many at once, does not. */
static json_t *claim_of(const struct stream_options *o)
{
    return json_pack("{s:s, s:I, s:i, s:I, s:i, s:i, s:i, s:f, s:f, s:i, s:s, s:s}", "generator", SYNTH_GENERATOR,
                     "records", (json_int_t)o->records, "shard-size", o->shard_size, "seed", (json_int_t)o->seed,
                     "max-elements", o->max_numel, "max-ops", o->max_ops, "dtypes", (int)o->dtypes, "verify-share",
                     o->verify, "mutant-share", o->mutants, "trials", o->trials, "backend",
                     o->backend ? o->backend : "sim", "style", prompt_style_name(o->style));
}

/* The folder holds shards of these options or none: others would be kept silently. */
static int claim(const struct stream_options *o, struct err *e)
{
    char *path = path_join(o->out, "options.json");
    json_t *mine = claim_of(o), *theirs = file_exists(path) ? json_read(path, e) : NULL;
    const char *key;
    json_t *v;
    int rc = 0;

    if (file_exists(path) && !theirs)
        rc = -1;
    else if (!theirs)
        rc = json_write(path, mine, e);
    json_object_foreach(mine, key, v)
        if (!rc && theirs && !json_equal(v, json_object_get(theirs, key))) {
            char *now = json_text(v), *then = json_text(json_object_get(theirs, key));
            rc = err_set(e, ERR_INPUT, "'%s' holds records made with %s %s, not %s; give the same options or another "
                         "--out", o->out, key, then, now);
            free(now), free(then);
        }
    json_decref(mine), json_decref(theirs);
    free(path);
    return rc;
}

int stream_make(const struct stream_options *o, struct stream_stats *ret, struct err *e)
{
    struct dag_table *t = dag_table_new(NULL);
    long shards = (o->records + o->shard_size - 1) / o->shard_size;
    struct stream_stats n = {0};
    struct progress p;
    bool whole = true;
    int rc = make_folders(o, e) < 0 || claim(o, e) < 0 ? -1 : 0;

    progress_start(&p, "shards", 0, (uint64_t)((shards - o->process + o->processes - 1) / o->processes));
    for (int i = o->process; i < shards && !rc; i += o->processes) {
        if (is_made(o, i))
            n.kept_before++;
        else
            rc = make_shard(o, t, i, &n, e);
        progress_at(&p, (uint64_t)(n.shards + n.kept_before));
    }
    progress_end(&p);
    dag_table_free(t);
    for (int i = 0; i < shards && !rc; i++)
        whole = whole && is_made(o, i);
    if (whole && !rc) // the last of several processes
        rc = card_write(o->out, shards, e);
    *ret = n;
    return rc;
}
