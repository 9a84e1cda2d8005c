/* stream.c - see stream.h. Reading order: stream_make at the end; a shard is drawn, verified, written. */
#include "synth/stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "synth/dag_draw.h"
#include "synth/ir/ast_mutate.h"
#include "synth/program.h"
#include "synth/reason.h"
#include "synth/verify.h"
#include "synth/worth.h"

#define GENERATOR "musacoder-synth/2"

/* One record before its verdict is known. */
struct item {
    json_t *record;
    char *name, *task, *program; /* program NULL: nothing to verify */
    bool held, verify;
    char *mutant;    /* NULL, or the program with a bug */
    int bug;         /* its kind */
    json_t *repair, *review; /* NULL, or what the mutant's verdict made of it */
};

struct shard {
    const struct stream_options *o;
    const struct dag_table *t;
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

static const char *const dtype_names[] = {"float32", "float16", "bfloat16", "int64"};

static json_t *inputs_of(const struct dag *g)
{
    json_t *a = json_array();

    for (int i = 0; i < g->n_values; i++) {
        const struct tdesc *t = &g->value[i].t;
        json_t *shape = json_array(), *stride = json_array();
        int64_t s = tdesc_numel(t);
        for (int d = 0; d < t->rank; d++) {
            s /= t->d[d];
            json_array_append_new(shape, json_integer(t->d[d]));
            json_array_append_new(stride, json_integer(s));
        }
        if (g->value[i].kind == VALUE_INPUT)
            json_array_append_new(a, json_pack("{s:O, s:s, s:O}", "shape", shape, "dtype", dtype_names[t->dtype],
                "stride", stride));
        json_decref(shape), json_decref(stride);
    }
    return a;
}

static json_t *task_view(const struct dag *g, const char *code, const char *hash)
{
    json_t *ops = json_array(), *families = json_array();

    for (int n = 0; n < g->n_nodes; n++) {
        json_array_append_new(ops, json_string(g->node[n].c.op->name));
        json_array_append_new(families, json_string(g->node[n].c.op->family));
    }
    return json_pack("{s:s, s:o, s:o, s:s, s:o}", "code", code, "ops", ops, "families", families, "graph_hash", hash,
        "inputs",
                     inputs_of(g));
}

static json_t *kernel_view(const struct kernels *k, const char *code, enum fusion level)
{
    struct buf b;
    json_t *v;

    buf_init(&b, 4096);
    for (int i = 0; i < k->n; i++)
        buf_addf(&b, "%s%s:%s", i ? " " : "", nest_class_names[k->k[i].nest.class], k->k[i].s->name);
    v = json_pack("{s:s, s:s, s:s, s:s, s:i}", "lang", "cuda", "code", code, "strategy", b.p, "fusion",
        fusion_names[level],
                  "kernels", k->n);
    buf_free(&b);
    return v;
}

static json_t *messages_of(const struct stream_options *o, const struct dag *g, const char *task, const char *reason,
                           const char *program)
{
    json_t *inputs = inputs_of(g), *m;
    char *lines = prompt_inputs(inputs);
    char *prompt = prompt_task(reason ? PROMPT_FULL : o->style, task, "cuda", lines);
    char *answer = xasprintf("%s%s```python\n%s```", reason ? reason : "", reason ? "\n" : "", program);

    m = prompt_start(prompt);
    prompt_say(m, "assistant", answer);
    json_decref(inputs);
    free(lines), free(prompt), free(answer);
    return m;
}

/* "What shape does this module return?", answered by the rows' rules. */
static json_t *shape_messages(const struct dag *g, const char *task)
{
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
    buf_addf(&b, "%s), torch.%s", t->rank == 1 ? "," : "", dtype_names[t->dtype]);
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

static bool held_out(uint64_t hash)
{
    return hash % 8 == 0;
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
    *ret = (struct item){.name = xstrdup(id), .task = xstrdup(task.p),
                         .program = strcmp(kind, "shape") ? xstrdup(program.p) : NULL, .held = held_out(hash)};
    ret->verify = ret->program && (double)rng_below(&r, 1000000) < s->o->verify * 1e6;
    draw_mutant(s, g, k, f, &style, &r, ret);
    ret->record = json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:n, s:{s:s, s:I, s:I}, s:i, s:s}", "id", id, "kind", kind, "messages",
        strcmp(kind, "shape") ? messages_of(s->o, g, task.p, reason.n ? reason.p : NULL, program.p) :
            shape_messages(g, task.p),
        "task", task_view(g, task.p, text), "kernel", strcmp(kind, "shape") ? kernel_view(k, program.p, level) :
            json_null(),
        "verdict", "provenance", "generator", GENERATOR, "seed", (json_int_t)s->o->seed, "index", (json_int_t)index,
        "difficulty", g->n_nodes + 2 * k->n, "split", ret->held ? "heldout" : "train");
    buf_free(&task), buf_free(&program), buf_free(&reason);
    arena_free(&a);
    return 0;
}

/* ---- verdicts ---- */

static json_t *brief(const json_t *verdict)
{
    return json_pack("{s:s, s:s?, s:s}", "status", json_str(verdict, "status", "infra"), "category",
                     json_str(verdict, "category", NULL), "backend", json_str(verdict, "backend", "sim"));
}

static void count_bug(struct shard *s, const char *name, const char *outcome)
{
    if (!json_object_get(s->bugs, name))
        json_object_set_new(s->bugs, name, json_object());
    count(json_object_get(s->bugs, name), outcome);
}

static json_t *derived(const struct item *x, const char *kind, json_t *messages, const json_t *verdict)
{
    char *id = xasprintf("%s-%s-%s", kind, x->name, x->bug < 0 ? "none" : ast_mutation_name(x->bug));
    json_t *v = json_pack("{s:s, s:s, s:o, s:O, s:o, s:o, s:s}", "id", id, "kind", kind, "messages", messages, "task",
                          json_object_get(x->record, "task"), "verdict", brief(verdict), "provenance",
                          json_pack("{s:s, s:s, s:s}", "generator", GENERATOR, "parent", x->name, "mutation",
                                    x->bug < 0 ? "none" : ast_mutation_name(x->bug)),
                          "split", "train");

    free(id);
    return v;
}

/* Task, broken program, what the judge said, the program; and a question whether the broken one is right. */
static void derive_records(const struct shard *s, struct item *x, const json_t *verdict)
{
    const char *feedback = json_str(verdict, "feedback", "");
    char *prompt = prompt_task(s->o->style, x->task, "cuda", NULL), *broken = xasprintf("```python\n%s```", x->mutant);
    char *answer = xasprintf("The mistake: %s.\n\n```python\n%s```", ast_mutation_reason(x->bug), x->program);
    char *question = xasprintf("Is this program right for the task?\n\n```python\n%s```\n\n%s", x->task, broken);
    char *review = xasprintf("No: %s. The judge says: %s", ast_mutation_reason(x->bug), feedback);
    json_t *m = prompt_start(prompt), *q = prompt_start(question);

    prompt_turn(m, s->o->style, broken, feedback);
    prompt_say(m, "assistant", answer);
    prompt_say(q, "assistant", review);
    x->repair = derived(x, "repair", m, verdict);
    x->review = derived(x, "review", q, verdict);
    free(prompt), free(broken), free(answer), free(question), free(review);
}

/* The same question about a program that passed: reviewers must not learn that every program is wrong. */
static void derive_praise(const struct shard *s, struct item *x, const json_t *verdict)
{
    char *question = xasprintf("Is this program right for the task?\n\n```python\n%s```\n\n```python\n%s```", x->task,
                               x->program);
    json_t *q = prompt_start(question);

    (void)s;
    prompt_say(q, "assistant", "Yes. The judge finds nothing: every trial matches, and its own kernels do the work.");
    x->bug = -1;
    x->review = derived(x, "review", q, verdict);
    free(question);
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
        json_object_set_new(s->item[of[i]].record, "verdict", brief(verdict));
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

static int write_shard(const struct shard *s, struct err *e)
{
    char *path = xasprintf("%s/stats/%05d.json", s->o->out, s->index);
    json_t *v = json_pack("{s:i, s:I, s:I, s:I, s:O, s:O, s:O, s:I, s:I, s:O}", "records", s->n, "verified",
        (json_int_t)s->verified,
        "failed",
                          (json_int_t)s->failed, "reasons_without_source", (json_int_t)s->unsaid, "refused", s->refused,
                          "schedules", s->strategies, "operators", s->ops, "mutants", (json_int_t)s->mutants,
                          "undetected", (json_int_t)s->undetected, "mutations", s->bugs);
    int rc = write_split(s, "train", 0, e) < 0 || write_split(s, "heldout", 1, e) < 0 || write_split(s, "failed", 2,
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
    struct shard s = {.o = o, .t = t, .index = index, .refused = json_object(), .strategies = json_object(), .ops =
        json_object(), .bugs = json_object()};
    int rc = 0;

    s.item = xcalloc((size_t)(last - first), sizeof *s.item);
    for (long i = first; i < last && !rc; i++)
        if (!(rc = draw_item(&s, i, &s.item[s.n], e)))
            s.n++;
    if (!rc)
        rc = verify_shard(&s, e);
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

int stream_make(const struct stream_options *o, struct stream_stats *ret, struct err *e)
{
    struct dag_table *t = dag_table_new(NULL);
    long shards = (o->records + o->shard_size - 1) / o->shard_size;
    struct stream_stats n = {0};
    struct progress p;
    int rc = make_folders(o, e);

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
    *ret = n;
    return rc;
}
