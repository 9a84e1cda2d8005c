/* test_synth.c - the corpus: sides that never meet, five held-out splits, repairs that are honest, the same bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "synth/corpus.h"
#include "synth/surface/kind.h"
#include "synth/surface/surface.h"
#include "synth/ir/ast_mutate.h"
#include "synth/knowledge.h"
#include "synth/program.h"
#include "synth/triviality.h"
#include "task/repair_text.h"

/* ---- graphs ---- */

static int add(struct dag *g, const char *op, int in)
{
    const struct opdef *row = op_find_row(op);
    struct op_call c = {.op = row};
    int ins[OP_INPUTS] = {in, -1, -1, -1, -1}, n;
    struct rng r;

    rng_seed(&r, 3, 0);
    assert_true(op_draw_on(row, &r, &(struct op_limits){.max_numel = 4096, .max_work = 1 << 16, .dtypes = 1},
                           &g->value[in].t, &c));
    n = dag_add(g, &c, ins, 0);
    assert_true(n >= 0);
    return g->node[n].out;
}

static void chain(struct dag *g, int m, int n, const char *first, const char *second)
{
    struct tdesc t = {.rank = 2, .d = {m, n}};

    *g = (struct dag){0};
    add(g, second, add(g, first, dag_add_input(g, &t)));
}

static void hash_is_of_the_graph(void **state)
{
    static struct dag a, b, c;
    (void)state;

    chain(&a, 4, 5, "relu", "exp2"), chain(&b, 7, 9, "relu", "exp2"), chain(&c, 4, 5, "exp2", "relu");
    assert_true(dag_hash(&a, false) == dag_hash(&b, false));
    assert_true(dag_hash(&a, true) != dag_hash(&b, true));
    assert_true(dag_hash(&a, false) != dag_hash(&c, false));
}

static void worthless_graphs_are_told(void **state)
{
    static struct dag g;
    struct rng r;
    (void)state;

    rng_seed(&r, 1, 0);
    chain(&g, 4, 5, "relu", "tanh");
    assert_null(triviality_reason(&g, &r));
    chain(&g, 4, 5, "sigmoid", "sign"); // one everywhere
    assert_non_null(triviality_reason(&g, &r));
    chain(&g, 4, 5, "neg", "neg"); // the input
    assert_string_equal(triviality_reason(&g, &r), "an input passes");
    chain(&g, 4, 5, "transpose", "narrow");
    assert_string_equal(triviality_reason(&g, &r), "plumbing passes");
    chain(&g, 4, 5, "sigmoid", "relu"); // nothing is negative
    assert_string_equal(triviality_reason(&g, &r), "an operator may be dropped");
}

/* Every held-out operator has a taught relative, and every family of three and more a known one. */
static void operators_are_in_classes(void **state)
{
    int n, of[N_OP_CLASSES] = {0};
    const struct opdef *const *row = op_rows(&n);
    (void)state;

    for (int i = 0; i < n; i++) {
        int relatives[N_OP_CLASSES] = {0};
        for (int k = 0; k < n; k++)
            relatives[heldout_class(row[k])] += !strcmp(row[k]->family, row[i]->family);
        of[heldout_class(row[i])]++;
        assert_true(relatives[OP_TAUGHT] > 0);
        assert_true(relatives[OP_KNOWN] > 0);
    }
    assert_int_equal(of[OP_UNSEEN], 20);
    assert_int_equal(of[OP_KNOWN], 35);
    assert_int_equal(heldout_class(op_find_row("clamp")), OP_TAUGHT); // graphs guard domains with it
    assert_int_equal(heldout_class(op_find_row("atan")), OP_UNSEEN);
    assert_int_equal(heldout_class(op_find_row("norm2")), OP_KNOWN);
}

static void held_out_rules(void **state)
{
    static struct dag g;
    int n, held = 0;
    struct rng r;
    (void)state;

    rng_seed(&r, 1, 0);
    for (int i = 1; i <= 8; i++)
        assert_false(heldout_size(i));
    for (held = 0, n = 9; n < 1024; n++)
        held += heldout_size(n);
    assert_in_range(held, 200, 310);
    assert_false(heldout_constant(0) || heldout_constant(1));
    chain(&g, 4, 5, "relu", "tanh");
    assert_true(heldout_spell(&g, true, &r));
    assert_true(heldout_spelling(g.node[1].c.op, g.node[1].spelling));
    assert_true(heldout_spell(&g, false, &r));
    assert_false(heldout_spelling(g.node[1].c.op, g.node[1].spelling));
}

/* cat reads one tensor or the other: neither may be read where the other is meant. */
static void both_sides_stay_behind_the_guard(void **state)
{
    static struct dag g;
    struct arena a = {0};
    struct kernels *k = arena_alloc(&a, sizeof *k);
    struct program_style style = {.sizes = SIZES_PARAMS};
    struct tdesc t = {.rank = 1, .d = {33}};
    struct err e = ERR_INIT;
    struct buf b;
    struct afun *f;
    const char *load;
    (void)state;

    g = (struct dag){0};
    add(&g, "cat", add(&g, "tanhshrink", dag_add_input(&g, &t)));
    fuse(&g, FUSE_ALL, &a, k);
    assert_int_equal(k->n, 1);
    k->k[0].s = sched_find(NEST_MAP, "thread");
    k->k[0].tuned[0] = 256;
    assert_non_null(f = program_cuda(&g, k, &style, &a, &e));
    buf_init(&b, BUF_MAX_TEXT);
    ast_print(f, &style.c, &b);
    assert_non_null(load = strstr(b.p, "y[i - 33]"));
    assert_non_null(strstr(b.p, "} else"));
    assert_true(strstr(b.p, "} else") < load);
    buf_free(&b);
    arena_free(&a);
}

/* ---- words ---- */

static void answers_name_the_line(void **state)
{
    (void)state;
    char *s = repair_text_answer("a\n  b\nc\n", "a\n  B\nc\n", "it is small", NULL);

    assert_string_equal(s, "The faulty line is `b`. It should be `B`: it is small.\n\n```python\na\n  B\nc\n```");
    free(s);
    s = repair_text_answer("a\nc\n", "a\nb\nc\n", NULL, NULL);
    assert_string_equal(s, "A line is missing in front of `c`: `b`.\n\n```python\na\nb\nc\n```");
    free(s);
    s = repair_text_answer("a\nb\n", "a\n", "it is too much", NULL);
    assert_string_equal(s, "The faulty line is `b`. It does not belong there: it is too much.\n\n```python\na\n```");
    free(s);
    s = repair_text_answer("a\n", "a\n", NULL, NULL);
    assert_string_equal(s, "No line differs.\n\n```python\na\n```");
    free(s);
    /* the judge's words choose among two places; indentation alone is no difference */
    s = repair_text_answer("f();\n  int n = 3;\nout = empty({8, 4});\n",
                           "if (x)\n    f();\nint n = 3;\nout = empty({7, 1});\n", NULL,
                           "shape: expected (7, 1), got (8, 4)");
    assert_non_null(strstr(s, "The faulty line is `out = empty({8, 4});`. It should be `out = empty({7, 1});`.\n"));
    free(s);
    s = repair_text_answer("a();\nn = m;\n", "b();\nint m = 1;\nn = m;\n", NULL, "'m' was not declared");
    assert_non_null(strstr(s, "The faulty line is `a();`. It should be `b();`"));
    free(s);
    s = repair_text_answer("a();\nc();\nn = m;\n", "b();\nc();\nint m = 1;\nn = m;\n", NULL, "'int m' is missing");
    assert_non_null(strstr(s, "A line is missing in front of `n = m;`: `int m = 1;`"));
    free(s);
    /* of a quoted piece of source the marked line counts, however long its neighbours are */
    s = repair_text_answer("auto y = empty_like(x, x.options());\nc();\nreturn z;\n",
                           "auto y = empty_like(x);\nc();\nreturn y;\n", NULL,
                           "source:3:8: 'z' was not declared\n  1 | auto y = empty_like(x, x.options());\n  2 | c();\n"
                           "> 3 | return z;");
    assert_non_null(strstr(s, "The faulty line is `return z;`. It should be `return y;`."));
    free(s);
    s = repair_text_answer(" a\n", "a\n", NULL, "unexpected indent");
    assert_non_null(strstr(s, "The faulty line is `a`. It should be `a`."));
    free(s);
}

/* ---- a corpus, with a stand-in for the judge ---- */

/* A fixed share fails, in every category; what passes depends on the program only, so two judges agree. */
static json_t *stand_in_verdict(const struct verify_item *x)
{
    static const char *const categories[] = {"compile_error", "runtime_error", "correctness_error", "cheating",
                                             "timeout"};
    unsigned h = 7;

    for (const char *p = x->program; *p; p++)
        h = h * 31 + (unsigned char)*p;
    if (h % 5 < 3)
        return json_pack("{s:s, s:n, s:s, s:s}", "status", "passed", "category", "feedback", "", "backend", "sim");
    return json_pack("{s:s, s:s, s:o, s:s}", "status", "failed", "category", categories[h / 5 % 5], "feedback",
                     json_sprintf("what the judge says, %u", h), "backend", "sim");
}

static int judge_forward(const struct verify_options *o, const struct verify_item *items, int n, json_t **ret,
                         struct err *e)
{
    (void)o, (void)e;
    *ret = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(*ret, stand_in_verdict(&items[i]));
    return 0;
}

static int judge_backward(const struct verify_options *o, const struct verify_item *items, int n, json_t **ret,
                          struct err *e)
{
    (void)o, (void)e;
    *ret = json_array();
    for (int i = n - 1; i >= 0; i--)
        json_array_insert_new(*ret, 0, stand_in_verdict(&items[i]));
    return 0;
}

static struct corpus_options small_corpus(const char *out)
{
    return (struct corpus_options){.problem = {.seed = 7, .max_ops = 2, .max_numel = 1024, .dtypes = 1,
                                               .known_share = 0.5},
                                   .out = out,
                                   .tasks = 150, .per_task = 3, .prompts = 30, .harvest = 10, .answers = 2,
                                   .heldout = 12, .knowledge = 30, .repairs = 1, .verify_share = 0.5,
                                   .judge = judge_forward};
}

static char *read_text(const char *dir, const char *name)
{
    char *path = path_join(dir, name);
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    assert_int_equal(file_read(path, &b, NULL), 0);
    free(path);
    return buf_detach(&b);
}

static void same_file(const char *a, const char *b, const char *name)
{
    char *x = read_text(a, name), *y = read_text(b, name);

    assert_true(strlen(x) > 100);
    assert_string_equal(x, y);
    free(x), free(y);
}

static void same_seed_same_bytes(void **state)
{
    static const char *const names[] = {"train.jsonl",   "heldout.jsonl",  "prompts.jsonl", "oracle.jsonl",
                                        "harvest.jsonl", "rejected.jsonl", "stats.json"};
    char *a = dir_temp("synth", NULL), *b = dir_temp("synth", NULL);
    (void)state;

    for (int full = 0; full < 2; full++) {
        struct corpus_options ca = small_corpus(a), cb = small_corpus(b);
        struct corpus_stats na, nb;
        struct err e = ERR_INIT;

        ca.problem.prompt_format.style = cb.problem.prompt_format.style = full ? PROMPT_FULL : PROMPT_PLAIN;
        cb.judge = judge_backward;
        assert_int_equal(corpus_make(&ca, &na, &e), 0);
        assert_int_equal(corpus_make(&cb, &nb, &e), 0);
        assert_memory_equal(&na, &nb, sizeof na);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            same_file(a, b, names[i]);
    }
    dir_remove(a, NULL), dir_remove(b, NULL);
    free(a), free(b);
}

static int read_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    (void)line, (void)e;
    json_array_append(ctx, v);
    return 0;
}

static json_t *read_lines(const char *dir, const char *name)
{
    char *path = path_join(dir, name);
    json_t *a = json_array();

    assert_int_equal(jsonl_each(path, read_line, a, NULL), 0);
    free(path);
    return a;
}

static const char *view_of(const json_t *v, const char *key)
{
    const json_t *t = json_object_get(v, "task");

    return json_str(t ? t : json_object_get(v, "extra_info"), key, "");
}

static const char *said(const json_t *v, int i)
{
    return json_str(json_array_get(json_object_get(v, "messages"), (size_t)i), "content", "");
}

static void check_repair(const json_t *v)
{
    const char *answer = said(v, 3), *category = json_str(json_object_get(v, "broken_verdict"), "category", "");
    bool why = false;

    assert_true(!strcmp(category, "compile_error") || !strcmp(category, "runtime_error") ||
                !strcmp(category, "correctness_error"));

    assert_int_equal(json_array_size(json_object_get(v, "messages")), 4);
    assert_non_null(strstr(said(v, 2), "what the judge says, "));
    assert_true(!strncmp(answer, "The faulty line is `", 20) || !strncmp(answer, "A line is missing", 17));
    assert_non_null(strstr(answer, json_str(json_object_get(v, "kernel"), "code", "?")));
    assert_null(strstr(said(v, 1), json_str(json_object_get(v, "kernel"), "code", "?")));
    for (int m = 0; m < ast_mutations() && !why; m++)
        why = strstr(answer, ast_mutation_reason(m)) != NULL;
    assert_true(why);
}

static void check_record(const json_t *v, json_t *ids)
{
    const char *kind = json_str(v, "kind", ""), *status = json_str(json_object_get(v, "verdict"), "status", "passed");

    assert_false(json_object_get(ids, json_str(v, "id", "")));
    json_object_set_new(ids, json_str(v, "id", ""), json_true());
    assert_string_equal(status, "passed");
    if (!strcmp(kind, "generate")) {
        assert_int_equal(strncmp(said(v, 1), "```python\n", 10), 0);
        assert_non_null(strstr(said(v, 1), json_str(json_object_get(v, "kernel"), "code", "?")));
        assert_null(strpbrk(json_str(json_object_get(v, "kernel"), "code", "$"), "$@")); // no hole is left
    } else if (!strcmp(kind, "repair")) {
        check_repair(v);
    }
}

/* What training answers, breaks, collects on and asks are four sets of tasks; none of them is held out. */
static void sides_never_meet(void **state)
{
    static const char *const files[] = {"train.jsonl", "harvest.jsonl", "oracle.jsonl", "prompts.jsonl"};
    char *dir = dir_temp("synth", NULL);
    struct corpus_options c = small_corpus(dir);
    json_t *side_of = json_object(), *ids = json_object(), *lines, *v;
    struct corpus_stats n;
    size_t k;
    (void)state;

    assert_int_equal(corpus_make(&c, &n, NULL), 0);
    for (int i = 0; i < 4; i++) {
        lines = read_lines(dir, files[i]);
        json_array_foreach(lines, k, v) {
            const char *task = view_of(v, i == 3 ? "task_code" : "code"), *kind = json_str(v, "kind", "prompt");
            const char *side = !strcmp(kind, "repair") ? "parent" : i > 1 ? "asked" : files[i];
            if (!strcmp(kind, "knowledge"))
                continue;
            if (json_object_get(side_of, task))
                assert_string_equal(json_str(side_of, task, ""), side);
            json_object_set_new(side_of, task, json_string(side));
            assert_true(strtoull(view_of(v, "graph_hash"), NULL, 16) % 8 != 0);
            if (i < 3)
                check_record(v, ids);
        }
        json_decref(lines);
    }
    lines = read_lines(dir, "heldout.jsonl");
    assert_int_equal(json_array_size(lines), n.heldout);
    json_array_foreach(lines, k, v) {
        assert_null(json_object_get(side_of, view_of(v, "code")));
        assert_string_equal(json_str(v, "split", ""), "heldout");
        check_record(v, ids);
    }
    json_decref(lines);
    assert_true(n.repairs > 10 && n.rejected > 10 && n.knowledge == 30 && n.harvest > 5);
    json_decref(side_of), json_decref(ids);
    dir_remove(dir, NULL);
    free(dir);
}

static bool has_op(const json_t *v, const char *name)
{
    const json_t *op;
    size_t i;

    json_array_foreach(json_object_get(json_object_get(v, "task"), "ops"), i, op)
        if (!strcmp(json_string_value(op), name))
            return true;
    return false;
}

static bool any_op(const json_t *v, enum op_class c)
{
    int n;
    const struct opdef *const *row = op_rows(&n);

    for (int i = 0; i < n; i++)
        if (heldout_class(row[i]) == c && has_op(v, row[i]->name))
            return true;
    return false;
}

static bool any_held_size(const json_t *v)
{
    const json_t *in, *d;
    size_t i, k;

    json_array_foreach(json_object_get(json_object_get(v, "task"), "inputs"), i, in)
        json_array_foreach(json_object_get(in, "shape"), k, d)
            if (heldout_size((int)json_integer_value(d)))
                return true;
    return false;
}

static bool is_of(const json_t *v, const char *split)
{
    return !strncmp(view_of(v, "name"), split, strlen(split));
}

static void check_training(const char *dir, json_t *trained)
{
    json_t *lines = read_lines(dir, "train.jsonl"), *v;
    int questions_of_known = 0;
    size_t k;

    json_array_foreach(lines, k, v) {
        bool program = strcmp(json_str(v, "kind", ""), "knowledge") != 0;
        assert_false(any_op(v, OP_UNSEEN) || any_held_size(v));
        assert_false(program && any_op(v, OP_KNOWN));
        assert_null(strstr(view_of(v, "code"), "return x.")); // no method of a tensor
        questions_of_known += !program && any_op(v, OP_KNOWN);
        if (!strcmp(json_str(v, "kind", ""), "generate"))
            json_object_set_new(trained, view_of(v, "graph_hash"), json_true());
    }
    assert_true(questions_of_known > 3);
    json_decref(lines);
}

static void check_held(const json_t *v, const json_t *trained, const json_t *prompted)
{
    const char *graph = view_of(v, "graph_hash");

    assert_int_equal(any_op(v, OP_UNSEEN), is_of(v, "unseen_"));
    assert_int_equal(any_op(v, OP_KNOWN), is_of(v, "learned_"));
    assert_true(!any_held_size(v) || is_of(v, "attributes_"));
    if (is_of(v, "same_"))
        assert_null(json_object_get(trained, graph));
    if (is_of(v, "attributes_"))
        assert_non_null(json_object_get(trained, graph));
    if (is_of(v, "learned_"))
        assert_int_equal(json_object_get(prompted, graph) != NULL, is_of(v, "learned_sizes_"));
    assert_int_equal(strstr(view_of(v, "code"), "\"\"\"") != NULL, is_of(v, "style_"));
}

/* Graphs of prompts; every other one has a known operator, and as many are of one operator as in training. */
static json_t *check_prompts(const char *dir, double one_in_training)
{
    json_t *lines = read_lines(dir, "prompts.jsonl"), *graphs = json_object(), *v;
    double known = 0, one = 0, n = (double)json_array_size(lines);
    size_t k;

    json_array_foreach(lines, k, v) {
        json_t *more = json_object_get(v, "extra_info");
        known += !strcmp(json_str(more, "class", ""), "known");
        one += json_array_size(json_object_get(more, "families")) == 1;
        json_object_set_new(graphs, json_str(more, "graph_hash", ""), json_true());
    }
    assert_int_equal(known, n / 2);
    assert_true(one / n > one_in_training / 2 && one / n < one_in_training * 2);
    json_decref(lines);
    return graphs;
}

static double share_of_one(const char *dir)
{
    json_t *lines = read_lines(dir, "train.jsonl"), *v;
    double one = 0, n = 0;
    size_t k;

    json_array_foreach(lines, k, v)
        if (!strcmp(json_str(v, "kind", ""), "generate"))
            one += json_array_size(json_object_get(json_object_get(v, "task"), "ops")) == 1, n++;
    json_decref(lines);
    return one / n;
}

/* Each split breaks its own rule and no other; training breaks none. */
static void five_splits(void **state)
{
    char *dir = dir_temp("synth", NULL);
    struct corpus_options c = small_corpus(dir);
    json_t *lines, *v, *trained = json_object(), *prompted;
    struct corpus_stats n;
    json_t *learned = json_object(); // graphs of learned_graphs
    int seen[N_HELD] = {0}, sizes = 0;
    size_t k;
    (void)state;

    c.judge = NULL, c.prompts = 60;
    assert_int_equal(corpus_make(&c, &n, NULL), 0);
    assert_int_equal(n.repairs, 0);
    assert_int_equal(n.heldout, 5 * 12);
    check_training(dir, trained);
    prompted = check_prompts(dir, share_of_one(dir));
    lines = read_lines(dir, "heldout.jsonl");
    json_array_foreach(lines, k, v) {
        for (int s = 0; s < N_HELD; s++)
            seen[s] += is_of(v, heldout_names[s]);
        check_held(v, trained, prompted);
        if (is_of(v, "learned_graphs_"))
            json_object_set_new(learned, view_of(v, "graph_hash"), json_true());
        sizes += any_held_size(v);
    }
    for (int s = 0; s < N_HELD; s++)
        assert_int_equal(seen[s], 12);
    assert_true(sizes > 3);
    assert_true(json_object_size(learned) >= 5); // of 6: no graph is most of the split
    json_decref(lines), json_decref(trained), json_decref(prompted), json_decref(learned);
    dir_remove(dir, NULL);
    free(dir);
}

/* The option that teaches known operators leaves no split of them. */
static void known_operators_may_be_taught(void **state)
{
    char *dir = dir_temp("synth", NULL);
    struct corpus_options c = small_corpus(dir);
    json_t *lines, *v;
    struct corpus_stats n;
    int known = 0;
    size_t k;
    (void)state;

    c.judge = NULL, c.problem.all_taught = true, c.tasks = 60, c.prompts = 4, c.heldout = 3, c.harvest = 0;
    assert_int_equal(corpus_make(&c, &n, NULL), 0);
    assert_int_equal(n.heldout, 4 * 3);
    lines = read_lines(dir, "train.jsonl");
    json_array_foreach(lines, k, v)
        known += !strcmp(json_str(v, "kind", ""), "generate") && any_op(v, OP_KNOWN);
    assert_true(known > 5);
    json_decref(lines);
    dir_remove(dir, NULL);
    free(dir);
}

static void programs_keep_to_the_limit(void **state)
{
    char *dir = dir_temp("synth", NULL);
    struct corpus_options c = small_corpus(dir);
    struct corpus_stats n;
    struct err e = ERR_INIT;
    json_t *lines, *v;
    size_t k;
    (void)state;

    c.judge = NULL, c.problem.max_program = 1100;
    assert_int_equal(corpus_make(&c, &n, NULL), 0);
    lines = read_lines(dir, "oracle.jsonl");
    assert_true(json_array_size(lines) > 30);
    json_array_foreach(lines, k, v)
        assert_true(strlen(json_str(json_object_get(v, "kernel"), "code", "")) <= 1100);
    json_decref(lines);
    c.problem.max_program = 10;
    assert_int_equal(corpus_make(&c, &n, &e), -1);
    assert_non_null(strstr(e.msg, "--max-program"));
    dir_remove(dir, NULL);
    free(dir);
}

/* Common graphs do not fill a corpus: most tasks are of a graph that no task had before. */
static void training_varies(void **state)
{
    char *dir = dir_temp("synth", NULL);
    struct corpus_options c = small_corpus(dir);
    json_t *lines, *v, *graphs = json_object(), *asked = json_object();
    struct corpus_stats n;
    size_t k;
    (void)state;

    c.judge = NULL, c.tasks = 400, c.per_task = 1, c.prompts = c.harvest = c.heldout = 0, c.knowledge = 300;
    assert_int_equal(corpus_make(&c, &n, NULL), 0);
    lines = read_lines(dir, "train.jsonl");
    json_array_foreach(lines, k, v)
        if (!strcmp(json_str(v, "kind", ""), "generate")) {
            json_object_set_new(graphs, view_of(v, "graph_hash"), json_true());
        } else {
            assert_null(json_object_get(asked, said(v, 0))); // each question once
            json_object_set_new(asked, said(v, 0), json_true());
        }
    assert_true(json_object_size(graphs) > 300);
    assert_int_equal(json_object_size(asked), 300);
    json_decref(lines), json_decref(graphs), json_decref(asked);
    dir_remove(dir, NULL);
    free(dir);
}

static bool has_either(const char *s, const char *a, const char *b)
{
    return strstr(s, a) || strstr(s, b);
}

/* A plain program has no tuned number and no size that a smaller name would not do. A question holds what its answer
 * needs: no number of a module, no shape; an answer keeps its guards. */
static void plain_programs_choose_little(void **state)
{
    char *dir = dir_temp("synth", NULL);
    struct corpus_options c = small_corpus(dir);
    json_t *lines, *v;
    struct corpus_stats n;
    size_t k, threads = 0, guards = 0, reductions = 0;
    (void)state;

    c.judge = NULL, c.prompts = c.harvest = c.heldout = 0, c.knowledge = 300;
    assert_int_equal(corpus_make(&c, &n, NULL), 0);
    lines = read_lines(dir, "train.jsonl");
    json_array_foreach(lines, k, v) {
        const json_t *kernel = json_object_get(v, "kernel");
        const char *code = json_str(kernel, "code", ""), *ask = said(v, 0), *answer = said(v, 1);
        if (!strcmp(json_str(kernel, "strategy", ""), "map:thread")) {
            assert_non_null(strstr(code, ", 256>>>(")); // the schedule's first choice
            assert_true(has_either(code, "int N", "int D0") || !strstr(code, ".numel()"));
            threads++;
        }
        if (strcmp(json_str(v, "kind", ""), "knowledge"))
            continue;
        assert_null(strstr(ask, "self.hardtanh"));
        assert_true(strstr(ask, "Shapes: (") || (strstr(answer, "[i]") && !has_either(answer, "[d0", "[d1")));
        assert_true(strstr(ask, "Shapes: (") || !strstr(ask, "dim="));
        reductions += strstr(ask, "dim=") && strstr(answer, "for (int j = 0; j <");
        assert_true(!strstr(ask, "torch.where(") || strstr(answer, "if (") || strchr(answer, '?'));
        guards += strstr(answer, "if (") != NULL;
    }
    assert_true(threads > 10 && guards > 10 && reductions > 10);
    json_decref(lines);
    dir_remove(dir, NULL);
    free(dir);
}

static int judge_interrupted(const struct verify_options *o, const struct verify_item *items, int n, json_t **ret,
                             struct err *e)
{
    (void)o, (void)items, (void)n, (void)ret;
    return err_set(e, ERR_STOP, "interrupted");
}

static void interruption_leaves_no_files(void **state)
{
    char *dir = dir_temp("synth", NULL), *path = path_join(dir, "train.jsonl");
    struct corpus_options c = small_corpus(dir);
    struct corpus_stats n;
    struct err e = ERR_INIT;
    (void)state;

    c.judge = judge_interrupted;
    assert_int_equal(corpus_make(&c, &n, &e), -1);
    assert_int_equal(e.kind, ERR_STOP);
    assert_false(file_exists(path));
    dir_remove(dir, NULL);
    free(dir), free(path);
}

/* ---- bugs ---- */

static void every_bug_applies_somewhere(void **state)
{
    int n = ast_mutations(), *applied = calloc((size_t)n, sizeof *applied), missing = 0;
    struct dag_table *t = dag_table_new(NULL);
    struct dag *g = malloc(sizeof *g);
    struct kernels *k = malloc(sizeof *k);
    struct dag_limits l = {.l = {.max_numel = 1024, .max_work = 1 << 16, .dtypes = 1}, .min_ops = 1, .max_ops = 3,
                           .anchors = 2};
    struct program_style style = {.sizes = SIZES_PARAMS};
    struct err e = ERR_INIT;
    struct rng r;
    (void)state;

    rng_seed(&r, 5, 0);
    for (int i = 0; i < 300; i++) {
        struct arena a = {0};
        struct afun *f;
        dag_draw(t, &r, &l, g);
        fuse(g, FUSE_ALL, &a, k);
        if (fuse_schedule(k, &r) == 0 && (f = program_cuda(g, k, &style, &a, &e)))
            for (int m = 0; m < n; m++)
                applied[m] += ast_mutate(&a, &r, m, ast_clone(&a, f));
        arena_free(&a);
    }
    for (int m = 0; m < n; m++)
        if (!applied[m])
            print_message("never applies: %s\n", ast_mutation_name(m)), missing++;
    assert_int_equal(missing, 0);
    dag_table_free(t);
    free(applied), free(g), free(k);
}

/* ---- tasks as people write them ---- */

static enum op_class surface_class_of(const struct problem *p)
{
    json_t *ops = json_object_get(p->view, "ops"), *op;
    enum op_class most = OP_TAUGHT;
    size_t i;

    json_array_foreach(ops, i, op) {
        enum op_class c = heldout_name_class(kind_operator(json_string_value(op)));

        if (c == OP_UNSEEN || (c == OP_KNOWN && most == OP_TAUGHT))
            most = c;
    }
    return most;
}

/* Programs of training and RL's taught prompts hold taught operators alone; no text is on two sides. */
static void public_sides_never_meet(void **state)
{
    static const enum op_class wanted[N_HELD] = {[HELD_LEARNED] = OP_KNOWN, [HELD_UNSEEN] = OP_UNSEEN};
    const struct problem_options o = {.seed = 3, .max_ops = 4, .public = true, .known_share = 0.5,
                                      .prompt_format = {.style = PROMPT_FULL, .wordings = 1}};
    struct graph_set *texts = graph_set_new();
    struct problem_source s;
    struct err e = ERR_INIT;
    (void)state;

    problem_source_init(&s, &o);
    for (int i = 0; i < 260; i++) {
        enum side side = i < 160 ? SIDE_TRAIN : i < 200 ? SIDE_PROMPT : SIDE_HELD;
        enum heldout split = side == SIDE_HELD ? (enum heldout)(i % N_HELD) : HELD_SAME;
        struct problem p;

        if (side == SIDE_HELD && !problem_held(&s, split, 1)) {
            assert_int_equal(split, HELD_STYLE);
            continue;
        }
        assert_int_equal(problem_draw(&s, side, split, i, 1, false, &p, &e), 0);
        assert_int_equal(surface_class_of(&p),
                         side == SIDE_HELD ? wanted[split] : side == SIDE_PROMPT && i % 2 ? OP_KNOWN : OP_TAUGHT);
        assert_true(graph_set_add(texts, p.shape_hash));
        if (side != SIDE_HELD && p.n_nodes > 1)
            assert_false(heldout_graph(p.hash));
        if (side == SIDE_HELD && split == HELD_SAME)
            assert_true(p.n_nodes > 1 && heldout_graph(p.hash));
        assert_true(strstr(p.s[0].code, "class ModelNew"));
        problem_free(&p);
    }
    problem_source_free(&s);
    graph_set_free(texts);
}

/* Of the first n prompts the share is exact, and three of four are chains. */
static void prompts_are_of_known_operators_by_their_share(void **state)
{
    enum { PROMPTS = 80 };
    const struct problem_options o = {.seed = 5, .max_ops = 4, .public = true, .known_share = 0.75, .max_program = 7000,
                                      .prompt_format = {.style = PROMPT_FULL, .wordings = 1}};
    struct problem_source s;
    struct err e = ERR_INIT;
    int known = 0, chains = 0;
    (void)state;

    problem_source_init(&s, &o);
    for (int i = 0; i < PROMPTS; i++) {
        struct problem p;

        assert_int_equal(problem_draw(&s, SIDE_PROMPT, HELD_SAME, i, 1, false, &p, &e), 0);
        known += surface_class_of(&p) == OP_KNOWN, chains += p.n_nodes > 1;
        assert_int_equal(known, (i + 1) * 3 / 4);
        problem_free(&p);
    }
    problem_source_free(&s);
    assert_in_range(chains, 52, 70);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_are_of_known_operators_by_their_share),
        cmocka_unit_test(hash_is_of_the_graph),      cmocka_unit_test(worthless_graphs_are_told),
        cmocka_unit_test(held_out_rules),            cmocka_unit_test(answers_name_the_line),
        cmocka_unit_test(both_sides_stay_behind_the_guard),
        cmocka_unit_test(same_seed_same_bytes),      cmocka_unit_test(sides_never_meet),
        cmocka_unit_test(five_splits),               cmocka_unit_test(programs_keep_to_the_limit),
        cmocka_unit_test(operators_are_in_classes),  cmocka_unit_test(known_operators_may_be_taught),
        cmocka_unit_test(training_varies),           cmocka_unit_test(plain_programs_choose_little),
        cmocka_unit_test(interruption_leaves_no_files), cmocka_unit_test(every_bug_applies_somewhere),
        cmocka_unit_test(public_sides_never_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
