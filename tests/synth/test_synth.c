/* test_synth.c - registry, graphs, generator, null battery, templates, bugs, and corpora made with a stand-in judge. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "synth/corpus.h"
#include "synth/gen.h"
#include "synth/interp.h"
#include "synth/mutate.h"
#include "synth/text.h"

static const struct gen_options wide = {.max_ops = 5, .max_elements = 4096};

/* "relu square" -> a graph on one full input; an anchor by its name; "h=" saves, "(h)" or "(y)" is the operand. */
static struct graph graph_of(const char *spec)
{
    struct graph g = {.anchor = -1, .n_in = 1, .M = 5, .N = 33, .K = 1, .family = "chain"};
    char copy[256], *save = NULL;

    snprintf(copy, sizeof copy, "%s", spec);
    for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        struct node *p = &g.node[g.n];
        char *arg = strchr(w, '(');

        *p = (struct node){.operand = OPERAND_NONE, .save = !strncmp(w, "h=", 2), .c = 0.5};
        if (arg) {
            p->operand = arg[1] == 'h' ? OPERAND_H : 1;
            if (arg[1] == 'y')
                g.n_in = 2, g.input[1] = ROLE_FULL;
            *arg = 0;
        }
        p->op = op_find(p->save ? w + 2 : w);
        assert_non_null(p->op);
        if (p->op->kind == OP_ANCHOR)
            g.anchor = g.n;
        g.n++;
    }
    return g;
}

static uint64_t hash_of(const char *spec)
{
    struct graph g = graph_of(spec);

    return graph_hash(&g);
}

/* ---- registry ---- */

static void registry_is_complete(void **state)
{
    for (size_t i = 0; i < n_ops; i++) {
        const struct op *op = &ops[i];

        assert_ptr_equal(op_find(op->name), op);
        assert_non_null(strstr(op->torch, "$x"));
        assert_int_equal(op->kind == OP_ANCHOR, op->anchor != ANCHOR_NONE);
        if (op->kind == OP_ANCHOR) {
            assert_true(family_index(op->family) >= 0);
            continue;
        }
        assert_non_null(op->f);
        assert_int_equal(op->kind == OP_SCALAR, strstr(op->torch, "$c") != NULL);
        assert_int_equal(op->kind == OP_SCALAR, strstr(op->cuda, "$c") != NULL);
        assert_int_equal(op->kind == OP_BINARY, strstr(op->torch, "$y") != NULL);
        assert_int_equal(op->kind == OP_BINARY, strstr(op->cuda, "$y") != NULL);
    }
    assert_int_equal(op_find("linear")->anchor, ANCHOR_LINEAR);
    assert_null(op_find("conv9d"));
}

static void commuting_operators_commute(void **state)
{
    for (size_t i = 0; i < n_ops; i++)
        if (ops[i].kind == OP_BINARY) {
            double ab = ops[i].f(0.7, -1.3, 0.5), ba = ops[i].f(-1.3, 0.7, 0.5);
            assert_int_equal((ops[i].flags & OP_COMMUTES) != 0, fabs(ab - ba) < 1e-15);
        }
}

/* Every family can be drawn, core and all, and offers at least three strategies for its graphs. */
static void families_have_three_strategies(void **state)
{
    const struct tmpl *fit[PLAN_PROGRAMS];
    struct graph g;
    struct rng r;

    rng_seed(&r, 1, 1);
    for (size_t f = 0; f < n_families; f++)
        for (int i = 0; i < 200; i++) {
            struct gen_options o = wide;
            o.core_only = i % 2;
            gen_graph(&r, (int)f, &o, &g);
            assert_string_equal(g.family, families[f]);
            assert_in_range(tmpl_for(&g, fit, PLAN_PROGRAMS), 3, PLAN_PROGRAMS);
            assert_in_range(g.n, 1, GRAPH_NODES);
            assert_true(g.M * g.N <= 4096 && g.M * g.K <= 4096 && g.N * g.K <= 4096);
            for (int k = 0; o.core_only && k < g.n; k++)
                assert_true(g.node[k].op->flags & OP_CORE);
        }
}

/* ---- hash ---- */

static void hash_ignores_sizes_and_constants(void **state)
{
    struct graph a, b;
    struct rng r;

    rng_seed(&r, 3, 3);
    for (int i = 0; i < 300; i++) {
        gen_graph(&r, i % (int)n_families, &wide, &a);
        b = a;
        gen_resize(&r, &wide, &b);
        assert_int_equal(graph_hash(&a), graph_hash(&b));
        b.family = "other";
        assert_int_equal(graph_hash(&a), graph_hash(&b));
    }
}

static void hash_sees_structure(void **state)
{
    static const char *const different[] = {
        "relu",           "tanh",           "relu tanh",         "tanh relu",           "relu tanh relu",
        "relu add(y)",    "relu sub(y)",    "h=relu add(h)",     "h=relu tanh add(h)",  "h=relu tanh sub(h)",
        "h=relu sub(h)",  "row_sum",        "relu row_sum",      "row_sum relu",        "col_sum",
        "softmax tanh",   "tanh softmax",   "add(y) relu",       "h=relu relu mul(h)",  "relu relu mul(y)",
        "h=relu mul(h)",  "mul_s add_s",    "add_s mul_s",       "mul_s",
    };
    enum { N = sizeof different / sizeof *different };

    for (int i = 0; i < N; i++)
        for (int k = 0; k < i; k++)
            if (hash_of(different[i]) == hash_of(different[k]))
                fail_msg("'%s' and '%s' have one hash", different[i], different[k]);
}

static void hash_sees_broadcast(void **state)
{
    struct graph a = graph_of("relu add(y)"), b = a;

    b.input[1] = ROLE_ROW;
    assert_int_not_equal(graph_hash(&a), graph_hash(&b));
}

/* tanh(x) + relu(x) is relu(x) + tanh(x), but a difference has sides. */
static void hash_ignores_sides_of_commuting_joins(void **state)
{
    assert_int_equal(hash_of("h=relu tanh add(h)"), hash_of("h=tanh relu add(h)"));
    assert_int_equal(hash_of("h=relu tanh mul(h) sin"), hash_of("h=tanh relu mul(h) sin"));
    assert_int_not_equal(hash_of("h=relu tanh sub(h)"), hash_of("h=tanh relu sub(h)"));
}

/* ---- interpreter and null battery ---- */

static void interpreter_knows_closed_forms(void **state)
{
    struct graph g = graph_of("square row_mean add_s");
    double x[165];
    struct tensor in[GRAPH_INPUTS] = {{x, {5, 33}, 2, 165}}, y;

    for (int i = 0; i < 165; i++)
        x[i] = i % 33;
    assert_int_equal(interp_run(&g, in, -1, &y), 0);
    assert_int_equal(y.n, 5);
    for (int r = 0; r < 5; r++) /* sum of squares 0..32 = 32*33*65/6 */
        assert_true(fabs(y.v[r] - (32.0 * 33 * 65 / 6 / 33 + 0.5)) < 1e-9);
    interp_free(&y, 1);
    assert_int_equal(interp_run(&g, in, 1, &y), -1); /* without the reduction the shape changes: no such variant */
}

struct battery_case {
    const char *graph, *why; /* NULL: worthwhile */
};

static void null_battery(void **state)
{
    static const struct battery_case cases[] = {
        {"relu", NULL},
        {"mul_s tanh", NULL},
        {"softmax", NULL},
        {"h=sigmoid mul(h)", NULL},
        {"square relu", "passes without relu"},
        {"exp_neg abs", "passes without abs"},
        {"sigmoid relu", "passes without relu"},
        {"abs neg relu", "zeros pass"},
        {"softsign clamp_min", "a constant passes"}, /* with c = 1.5, set below */
        {"neg neg", "the input passes"},
        {"cube cube cube cube", "not finite"},
        {"square square square sin", "ill conditioned"},
    };
    char why[64];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct graph g;
        g = graph_of(cases[i].graph);
        if (!strcmp(g.node[g.n - 1].op->name, "clamp_min"))
            g.node[g.n - 1].c = 1.5;
        why[0] = 0;
        if (interp_worthwhile(&g, why) != !cases[i].why || strcmp(why, cases[i].why ? cases[i].why : ""))
            fail_msg("'%s': got '%s', want '%s'", cases[i].graph, why, cases[i].why ? cases[i].why : "worthwhile");
    }
}

/* ---- templates, text, bugs ---- */

static void text_engine(void **state)
{
    struct bindings t = {0};
    struct buf b;

    buf_init(&b, 4096);
    text_bind(&t, "n", "N");
    text_bind(&t, "np", "P");
    text_bind(&t, "lines", "a = $n;\nb;\n");
    text_bind(&t, "none", "");
    text_bind_call(&t, "M", "max($a, $b)");
    text_bind_call(&t, "I", "");
    text_expand(&b, "x $n$np $q\n    $lines\n    $none\n$M(f(1, 2), $n) $I(y[i])\n", &t);
    assert_string_equal(b.p, "x NP $q\n    a = N;\n    b;\nmax(f(1, 2), N) y[i]\n");
    buf_free(&b);
}

static void numbers_are_floats(void **state)
{
    char s[32];

    text_number(2, s), assert_string_equal(s, "2.0");
    text_number(0.25, s), assert_string_equal(s, "0.25");
    text_number(1e-7, s), assert_string_equal(s, "1e-07");
}

static char *program_of(const struct graph *g, const struct tmpl *t)
{
    struct schedule s = {t->blocks[0], 4};
    struct buf cuda, program;

    buf_init(&cuda, BUF_MAX_TEXT), buf_init(&program, BUF_MAX_TEXT);
    emit_cuda(g, t, &s, &cuda);
    emit_program(g, t->strategy, cuda.p, &program);
    buf_free(&cuda);
    return buf_detach(&program);
}

static void programs_have_no_holes(void **state)
{
    const struct tmpl *fit[PLAN_PROGRAMS];
    struct graph g;
    struct rng r;

    rng_seed(&r, 9, 9);
    for (int i = 0; i < 400; i++) {
        int n;
        gen_graph(&r, i % (int)n_families, &wide, &g);
        n = tmpl_for(&g, fit, PLAN_PROGRAMS);
        for (int k = 0; k < n; k++) {
            char *p = program_of(&g, fit[k]);
            assert_null(strchr(p, '$'));
            assert_null(strstr(p, "\n\n\n"));
            assert_non_null(strstr(p, "class ModelNew(nn.Module)"));
            free(p);
        }
    }
}

static void every_bug_applies_somewhere(void **state)
{
    int *done = xcalloc((size_t)mutate_kinds(), sizeof *done), classes[3] = {0};
    const struct tmpl *fit[PLAN_PROGRAMS];
    struct graph g;
    struct rng r;
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    rng_seed(&r, 12, 0);
    for (int i = 0; i < 300; i++) {
        int n;
        gen_graph(&r, i % (int)n_families, &wide, &g);
        n = tmpl_for(&g, fit, PLAN_PROGRAMS);
        for (int k = 0; k < n; k++) {
            char *p = program_of(&g, fit[k]);
            for (int kind = 0; kind < mutate_kinds(); kind++)
                if (mutate_apply(kind, &r, p, &b)) {
                    assert_string_not_equal(b.p, p);
                    done[kind]++;
                }
            free(p);
        }
    }
    assert_in_range(mutate_kinds(), 20, 64);
    for (int kind = 0; kind < mutate_kinds(); kind++) {
        if (!done[kind])
            fail_msg("no program can be broken by '%s'", mutate_name(kind));
        classes[mutate_class(kind)]++;
    }
    for (int i = 0; i < 3; i++)
        assert_in_range(classes[i], 3, 64);
    buf_free(&b);
    free(done);
}

/* ---- corpora ---- */

static const char *const categories[] = {"correctness_error", "compile_error", "runtime_error", "cheating"};

/* Decides by the program's text alone: 3 of 8 fail, now and then as cheating. */
static json_t *stand_in_verdict(const struct verify_item *it)
{
    uint64_t h = hash64(it->program, strlen(it->program), 0);

    if (h % 8 < 5)
        return json_pack("{s:s, s:n, s:s, s:{s:i}}", "status", "passed", "category", "feedback", "", "stage_ms", "run",
                         rand());
    return json_pack("{s:s, s:s, s:s, s:{s:i, s:i}}", "status", "failed", "category", categories[h / 8 % 4], "feedback",
                     "wrong", "compile", "ok", 0, "ms", rand());
}

static int judge_forward(const struct verify_options *o, const struct verify_item *items, int n, json_t **ret,
                         struct err *e)
{
    *ret = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(*ret, stand_in_verdict(&items[i]));
    return 0;
}

static int judge_backward(const struct verify_options *o, const struct verify_item *items, int n, json_t **ret,
                          struct err *e)
{
    *ret = json_array();
    for (int i = n - 1; i >= 0; i--)
        json_array_insert_new(*ret, 0, stand_in_verdict(&items[i]));
    return 0;
}

static struct corpus_options small_corpus(const char *out)
{
    struct corpus_options c = {.out = out, .repairs = 3, .judge = judge_forward};

    c.plan = (struct plan_options){.seed = 7, .tasks = 60, .heldout = 26, .prompts = 30, .per_task = 3,
                                   .gen = {.core_only = true, .max_ops = 4, .max_elements = 4096, .nice_numbers =
                                       true}};
    for (size_t i = 0; i < n_families; i++)
        c.plan.deal[c.plan.n_deal++] = (int)i;
    return c;
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
    static const char *const names[] = {"train.jsonl", "heldout.jsonl", "prompts.jsonl", "rejected.jsonl",
        "stats.json"};
    char *a = dir_temp("synth", NULL), *b = dir_temp("synth", NULL);

    for (int full = 0; full < 2; full++) {
        struct corpus_options ca = small_corpus(a), cb = small_corpus(b);
        struct corpus_stats na, nb;
        struct err e = ERR_INIT;

        ca.plan.style = cb.plan.style = full ? PROMPT_FULL : PROMPT_PLAIN;
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

static const char *graph_hash_of(const json_t *v)
{
    const json_t *t = json_object_get(v, "task");

    return json_str(t ? t : json_object_get(v, "extra_info"), "graph_hash", NULL);
}

static void check_record(const json_t *v, json_t *ids)
{
    const json_t *messages = json_object_get(v, "messages"), *last;
    bool repair = !strcmp(json_str(v, "kind", ""), "repair");
    const char *code = json_str(json_object_get(v, "kernel"), "code", ""), *said;

    assert_false(json_object_get(ids, json_str(v, "id", "")));
    json_object_set_new(ids, json_str(v, "id", ""), json_true());
    assert_string_equal(json_str(json_object_get(v, "verdict"), "status", ""), "passed");
    assert_null(json_object_get(json_object_get(v, "verdict"), "stage_ms"));
    assert_int_equal(json_array_size(messages), repair ? 4 : 2);
    last = json_array_get(messages, json_array_size(messages) - 1);
    said = json_str(last, "content", "");
    assert_int_equal(strncmp(said, "```python\n", 10), 0);
    assert_non_null(strstr(said, code));
    if (repair) {
        assert_string_equal(json_str(json_object_get(v, "broken_verdict"), "status", ""), "failed");
        assert_string_not_equal(json_str(json_object_get(v, "broken_verdict"), "category", ""), "cheating");
        assert_string_not_equal(json_str(json_array_get(messages, 1), "content", ""), said);
        assert_non_null(strstr(json_str(json_array_get(messages, 2), "content", ""),
                               json_str(json_object_get(v, "broken_verdict"), "feedback", "?")));
    }
}

/* Tasks that an answer without work would pass are refused, and said so. */
static void trivial_tasks_are_refused(void **state)
{
    char *dir = dir_temp("synth", NULL);
    struct corpus_options c = small_corpus(dir);
    struct corpus_stats n;
    json_t *lines, *v;
    size_t k;
    int tasks = 0;

    c.plan.tasks = 200;
    assert_int_equal(corpus_make(&c, &n, NULL), 0);
    lines = read_lines(dir, "rejected.jsonl");
    json_array_foreach(lines, k, v)
        tasks += !strcmp(json_str(v, "what", ""), "task");
    assert_true(tasks > 0);
    json_decref(lines);
    dir_remove(dir, NULL);
    free(dir);
}

static void sides_never_meet(void **state)
{
    static const char *const train_side[] = {"train.jsonl", "prompts.jsonl"};
    char *dir = dir_temp("synth", NULL);
    struct corpus_options c = small_corpus(dir);
    json_t *held = json_object(), *ids = json_object(), *trained = json_object(), *lines, *v;
    struct corpus_stats n;
    size_t k;

    assert_int_equal(corpus_make(&c, &n, NULL), 0);
    lines = read_lines(dir, "heldout.jsonl");
    assert_int_equal(json_array_size(lines), n.heldout);
    json_array_foreach(lines, k, v) {
        assert_null(json_object_get(held, graph_hash_of(v))); /* one task per held-out graph */
        json_object_set_new(held, graph_hash_of(v), json_true());
        check_record(v, ids);
    }
    json_decref(lines);
    for (int i = 0; i < 2; i++) {
        lines = read_lines(dir, train_side[i]);
        json_array_foreach(lines, k, v) {
            assert_null(json_object_get(held, graph_hash_of(v)));
            if (i == 0)
                check_record(v, ids), json_object_set_new(trained, graph_hash_of(v), json_true());
            else
                assert_null(json_object_get(trained, graph_hash_of(v))); /* RL asks for what was never answered */
        }
        json_decref(lines);
    }
    assert_true(n.repairs > 10 && n.rejected > 10);
    json_decref(held), json_decref(ids), json_decref(trained);
    dir_remove(dir, NULL);
    free(dir);
}

/* Without a judge every family has held-out tasks, five of several operators, each with a task file. */
static void unverified_corpus_is_whole(void **state)
{
    char *dir = dir_temp("synth", NULL), *stats;
    struct corpus_options c = small_corpus(dir);
    struct corpus_stats n;
    json_t *v, *g;

    c.judge = NULL;
    assert_int_equal(corpus_make(&c, &n, NULL), 0);
    assert_int_equal(n.heldout, 26);
    assert_int_equal(n.repairs, 0);
    stats = path_join(dir, "stats.json");
    v = json_read(stats, NULL);
    g = json_object_get(v, "distinct_graphs");
    assert_int_equal(json_i64(g, "heldout", 0), 26);
    assert_true(json_i64(g, "heldout_multi_operator", 0) >= 5);
    assert_int_equal(json_object_size(json_object_get(v, "families")), n_families);
    json_decref(v);
    free(stats);
    dir_remove(dir, NULL);
    free(dir);
}

static int judge_interrupted(const struct verify_options *o, const struct verify_item *items, int n, json_t **ret,
                             struct err *e)
{
    return err_set(e, ERR_STOP, "interrupted");
}

static void interruption_leaves_no_files(void **state)
{
    char *dir = dir_temp("synth", NULL), *path = path_join(dir, "train.jsonl");
    struct corpus_options c = small_corpus(dir);
    struct corpus_stats n;
    struct err e = ERR_INIT;

    c.judge = judge_interrupted;
    assert_int_equal(corpus_make(&c, &n, &e), -1);
    assert_int_equal(e.kind, ERR_STOP);
    assert_false(file_exists(path));
    dir_remove(dir, NULL);
    free(dir), free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registry_is_complete),
        cmocka_unit_test(commuting_operators_commute),
        cmocka_unit_test(families_have_three_strategies),
        cmocka_unit_test(hash_ignores_sizes_and_constants),
        cmocka_unit_test(hash_sees_structure),
        cmocka_unit_test(hash_sees_broadcast),
        cmocka_unit_test(hash_ignores_sides_of_commuting_joins),
        cmocka_unit_test(interpreter_knows_closed_forms),
        cmocka_unit_test(null_battery),
        cmocka_unit_test(text_engine),
        cmocka_unit_test(numbers_are_floats),
        cmocka_unit_test(programs_have_no_holes),
        cmocka_unit_test(every_bug_applies_somewhere),
        cmocka_unit_test(same_seed_same_bytes),
        cmocka_unit_test(sides_never_meet),
        cmocka_unit_test(trivial_tasks_are_refused),
        cmocka_unit_test(unverified_corpus_is_whole),
        cmocka_unit_test(interruption_leaves_no_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
