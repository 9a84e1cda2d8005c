/* test_parts.c - costs that tell slow from fast, figures of ncu, mutation-kill scores, domains of inputs, schedules of
 * four at once where memory allows it, and what a teacher's answers become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "synth/ncu.h"
#include "synth/rewrite.h"
#include "synth/teach.h"
#include "synth/triviality.h"

static uint64_t seed = 3;

static int add(struct dag *g, const char *op, int in)
{
    const struct opdef *row = op_find_row(op);
    struct op_call c = {.op = row};
    int ins[OP_INPUTS] = {in, -1, -1, -1, -1}, n;
    struct rng r;

    rng_seed(&r, seed, 0);
    assert_true(op_draw_on(row, &r, &(struct op_limits){.max_numel = 8192, .max_work = 1 << 20, .dtypes = 1},
                           &g->value[in].t, &c));
    n = dag_add(g, &c, ins, 0);
    assert_true(n >= 0);
    return g->node[n].out;
}

static void chain(struct dag *g, int m, int n, const char *first, const char *second)
{
    struct tdesc t = {.rank = 2, .d = {m, n}};
    int v;

    *g = (struct dag){0};
    v = add(g, first, dag_add_input(g, &t));
    if (second)
        add(g, second, v);
}

/* All kernels of the graph with the schedule of that name, where it fits. */
static struct cost cost_with(const struct dag *g, enum fusion level, const char *name)
{
    static struct kernels k;
    struct arena a = {0};
    struct cost c;

    fuse(g, level, &a, &k);
    assert_int_equal(fuse_schedule(&k, NULL), 0);
    for (int i = 0; i < k.n && name; i++) {
        k.k[i].s = sched_find(k.k[i].nest.class, name);
        assert_non_null(k.k[i].s);
        for (int t = 0; t < 3; t++)
            k.k[i].tuned[t] = sched_tune(k.k[i].s, t, NULL);
    }
    c = cost_of(&k);
    arena_free(&a);
    return c;
}

static void costs(void **state)
{
    static struct dag g;
    struct cost one, two;
    (void)state;

    chain(&g, 64, 64, "relu", "tanh");
    one = cost_with(&g, FUSE_ALL, NULL), two = cost_with(&g, FUSE_NONE, NULL);
    assert_int_equal(one.kernels, 1);
    assert_int_equal(two.kernels, 2);
    assert_int_equal(one.bytes, 2 * 64 * 64 * 4); // one load and one store of each element
    assert_int_equal(two.bytes, 2 * one.bytes);
    assert_true(two.us > 1.9 * one.us);
    chain(&g, 64, 64, "linear", NULL);
    one = cost_with(&g, FUSE_NONE, "tile"), two = cost_with(&g, FUSE_NONE, "direct");
    assert_true(one.bytes * 4 < two.bytes); // a tile of 16 is loaded once for 16 products
    assert_int_equal(one.steps, two.steps);
    chain(&g, 64, 128, "softmax", NULL);
    one = cost_with(&g, FUSE_NONE, "warp"), two = cost_with(&g, FUSE_NONE, "thread");
    assert_true(two.steps > 4 * one.steps); // whichever axis it is along
}

static void rewrites(void **state)
{
    static struct dag g;
    static struct kernels k, slow;
    struct arena a = {0};
    enum fusion level = FUSE_NONE;
    struct rng r;
    char *why;
    (void)state;

    chain(&g, 64, 64, "relu", "tanh");
    rng_seed(&r, 4, 0);
    fuse(&g, level, &a, &k);
    assert_int_equal(fuse_schedule(&k, NULL), 0);
    assert_true(rewrite_find(&g, &r, &a, &k, &level, &slow)); // one kernel is found for the two
    assert_true(cost_of(&slow).us >= REWRITE_RATIO * cost_of(&k).us);
    assert_int_equal(k.n, 1);
    assert_true(level != FUSE_NONE);
    why = rewrite_answer(&slow, &k);
    assert_non_null(strstr(why, "launches 2 kernels where 1 suffice"));
    free(why);
    arena_free(&a);
}

static void kill_scores(void **state)
{
    static struct dag g;
    struct triviality_kill k;
    struct rng r;
    (void)state;

    rng_seed(&r, 1, 0);
    chain(&g, 6, 33, "linear", "gelu");
    k = triviality_kill_score(&g, &r);
    assert_true(k.mutants == TRIVIALITY_MUTANTS && k.killed >= 3);
    chain(&g, 4, 5, "sigmoid", "ceil"); // one everywhere: a neighbour's value is not told from one's own
    k = triviality_kill_score(&g, &r);
    assert_true(k.mutants > 1 && k.killed < k.mutants);
}

static void random_leaves(const struct dag *g, struct rng *r, double *leaf[])
{
    int n = 0;

    for (int i = 0; i < g->n_values; i++) {
        int64_t m = tdesc_numel(&g->value[i].t);
        if (g->value[i].kind == VALUE_NODE)
            continue;
        leaf[n] = xcalloc((size_t)m + 1, sizeof(double));
        for (int64_t k = 0; k < m; k++)
            leaf[n][k] = 0.1 + rng_f64(r);
        n++;
    }
    leaf[n] = NULL;
}

/* A node's own loop nest in its place changes nothing, wherever the node stands; a node left out changes what reads
 * it. */
static void nests_in_place(void **state)
{
    static const char *const pairs[][2] = {{"linear", "gelu"}, {"softmax", "tanh"}, {"tanh", "rms_norm"},
                                           {"sigmoid", "cumsum"}, {"relu", "amax"}, {"gelu", "logsumexp"}};
    (void)state;

    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        static struct dag g;
        double *leaf[DAG_VALUES + 1], *v[DAG_VALUES];
        struct rng r;
        chain(&g, 6, 33, pairs[p][0], pairs[p][1]);
        rng_seed(&r, p, 0);
        random_leaves(&g, &r, leaf);
        dag_eval_all(&g, (const double *const *)leaf, v);
        for (int node = 0; node < g.n_nodes; node++) {
            struct arena a = {0};
            struct nest k;
            double *z;
            op_lower(&g.node[node].c, &a, &k);
            z = dag_eval_with(&g, v, node, &k);
            for (int64_t i = 0; i < tdesc_numel(&g.value[dag_result(&g)].t); i++)
                assert_float_equal(z[i], v[dag_result(&g)][i], 1e-6);
            free(z);
            arena_free(&a);
        }
        if (p == 3) {
            double *z = dag_eval_with(&g, v, 0, NULL);
            assert_true(z[3] != v[dag_result(&g)][3]);
            free(z);
        }
        dag_values_free(&g, v);
        for (int i = 0; leaf[i]; i++)
            free(leaf[i]);
    }
}

static void domains(void **state)
{
    static struct dag g;
    struct op_interval d;
    struct rng r;
    (void)state;

    rng_seed(&r, 1, 0);
    chain(&g, 8, 9, "asin", NULL);
    d = dag_domain(&g, 0);
    assert_true(d.lo == -0.95 && d.hi == 0.95);
    assert_null(triviality_reason(&g, &r)); // it is finite there
    chain(&g, 8, 9, "tanh", NULL);
    d = dag_domain(&g, 0);
    assert_true(d.lo == 0 && d.hi == 0);
}

static bool has(const struct nest *k, const char *name)
{
    const struct sched *fit[64];
    int n = sched_for(k, fit, 64);

    for (int i = 0; i < n; i++)
        if (!strcmp(fit[i]->name, name))
            return true;
    return false;
}

/* float4 needs elements that lie side by side, and are floats. */
static void four_at_once(void **state)
{
    static struct kernels k;
    static struct dag g;
    struct arena a = {0};
    (void)state;

    chain(&g, 8, 64, "relu", NULL);
    fuse(&g, FUSE_NONE, &a, &k);
    assert_true(has(&k.k[0].nest, "vector"));
    k.k[0].nest.in[0].t.dtype = DT_F16;
    assert_false(has(&k.k[0].nest, "vector"));
    chain(&g, 8, 64, "transpose", NULL);
    fuse(&g, FUSE_NONE, &a, &k);
    assert_false(has(&k.k[0].nest, "vector"));
    chain(&g, 8, 64, "linear", NULL);
    fuse(&g, FUSE_NONE, &a, &k);
    assert_true(has(&k.k[0].nest, "vector")); // x and the weight lie along the sum
    assert_false(has(&k.k[0].nest, "columns"));
    arena_free(&a);
}

/* Sums of a square along either axis: only one of them lies together. */
static void four_along_rows(void **state)
{
    static struct kernels k;
    static struct dag g;
    struct arena a = {0};
    int n[2] = {0};
    (void)state;

    for (seed = 0; seed < 60; seed++) {
        const struct nest *x = &k.k[0].nest;
        const struct ax *load;
        int d[NEST_DIMS], along;
        chain(&g, 32, 32, "sum", NULL);
        fuse(&g, FUSE_NONE, &a, &k);
        load = x->stat[0].elem;
        if (nest_group(x, 1, d) != 1 || x->dim[d[0]].n != 32 || load->kind != AX_LOAD || load->n != 2)
            continue;
        along = ax_is_id(load->kid[1], x->dim[d[0]].name);
        assert_int_equal(has(x, "vector"), along);
        n[along]++;
    }
    assert_true(n[0] && n[1]);
    seed = 3;
    arena_free(&a);
}

/* ---- ncu ---- */

#define HEAD "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
#define ROW(id, name, unit, value) "\"" id "\",\"k\",\"(1)\",\"(2)\",\"" name "\",\"" unit "\",\"" value "\"\n"

static const char *bound_of(const char *memory, const char *compute)
{
    char *text = xasprintf("==PROF== x\n" HEAD ROW("0", "Memory Throughput", "Gbyte/s", "9,999")
                           "\"0\",\"k\",\"(1)\",\"(2)\",\"Memory Throughput\",\"%%\",\"%s\"\n"
                           "\"0\",\"k\",\"(1)\",\"(2)\",\"Compute (SM) Throughput\",\"%%\",\"%s\"\n", memory, compute);
    struct err e = ERR_INIT;
    json_t *v = ncu_parse(text, strlen(text), "test", &e);
    const char *bound = ncu_bound(json_array_get(v, 0));

    assert_int_equal(json_array_size(v), 1);
    assert_true(ncu_metric(json_array_get(v, 0), "Memory Throughput", "Gbyte/s") == 9999);
    json_decref(v);
    free(text);
    return bound;
}

static void bounds(void **state)
{
    (void)state;
    assert_string_equal(bound_of("80.5", "20"), "memory");
    assert_string_equal(bound_of("61", "93"), "compute");
    assert_string_equal(bound_of("59.9", "59"), "latency");
    assert_string_equal(bound_of("n/a", "59"), "unknown");
}

/* ---- a teacher ---- */

static int judged;

static int fake_judge(const struct verify_options *o, const struct verify_item *items, int n, json_t **ret,
                      struct err *e)
{
    (void)o, (void)e;
    judged += n;
    *ret = json_array();
    for (int i = 0; i < n; i++) {
        bool good = strstr(items[i].program, "good") != NULL, late = strstr(items[i].program, "late") != NULL;
        json_array_append_new(*ret, json_pack("{s:s, s:s?, s:s, s:s}", "status", good ? "passed" : "failed", "category",
                                              good ? NULL : late ? "timeout" : "compile_error", "backend", "sim",
                                              "feedback", "line 3"));
    }
    return 0;
}

static void answer(const char *path, const char *key, const char *text, bool cut)
{
    struct err e = ERR_INIT;
    json_t *v = json_pack("{s:s, s:s, s:s, s:b, s:i, s:i}", "key", key, "model", "m", "text", text, "cut", cut,
                          "prompt_tokens", 10, "completion_tokens", 5);

    assert_int_equal(jsonl_append(path, v, &e), 0);
    json_decref(v);
}

static int count_line(json_t *line, size_t no, void *ctx, struct err *e)
{
    (void)no, (void)e;
    json_object_set_new(ctx, json_str(line, "kind", "?"),
                        json_integer(json_i64(ctx, json_str(line, "kind", "?"), 0) + 1));
    return 0;
}

/* The key of sample k: what was asked, by which model, how. */
static void key_of(const char *task, int k, char ret[65])
{
    char *prompt = prompt_task(PROMPT_PLAIN, task, "cuda", NULL), *how = xasprintf("m|1|1|9|%d", k), *text;
    json_t *m = prompt_start(prompt);
    struct sha256 h;

    text = json_text(m);
    sha256_start(&h);
    sha256_adds(&h, text), sha256_adds(&h, how);
    sha256_end(&h, ret);
    free(prompt), free(how), free(text);
    json_decref(m);
}

static void answers_become_records(void **state)
{
    static const char *const texts[] = {"```python\nclass ModelNew: good\n```", "<think>so</think>\n```python\nclass "
                                        "ModelNew: bad\n```", "```python\nclass ModelNew: late\n```", "none"};
    static const char task[] = "import torch\nclass Model(torch.nn.Module):\n    pass\ndef get_inputs():\n"
                               "    return []\n"
                               "def get_init_inputs():\n    return []\n";
    struct err e = ERR_INIT;
    char *dir = dir_temp("teach", &e), *path = path_join(dir, "t.py"), *answers = path_join(dir, "answers.jsonl");
    struct teach_options o = {.out = dir, .tasks = path, .model = "m", .samples = 5, .parallel = 1, .max_new = 9,
                              .temperature = 1, .top_p = 1, .judge = fake_judge};
    struct teach_stats s;
    json_t *kinds = json_object();
    char *data;
    (void)state;

    assert_int_equal(folder_claim(dir, "these records", &e), 0);
    assert_int_equal(file_write(path, task, strlen(task), &e), 0);
    answer(answers, "another question", "```python\nclass ModelNew: good\n```", false);
    assert_int_equal(teach(&o, &s, &e), 0);
    assert_int_equal(s.cached, 0);
    assert_int_equal(s.unasked, 5);
    assert_int_equal(s.tokens, 15);
    assert_int_equal(judged, 0);
    data = path_join(dir, "data/train-00000.jsonl");
    assert_int_equal(jsonl_each(data, count_line, kinds, &e), 0);
    assert_int_equal(json_object_size(kinds), 0); // it was the answer to another question
    for (int k = 0; k < 5; k++) {
        char key[65];
        key_of(task, k, key);
        answer(answers, key, texts[k % 4], k == 4); // the last one is cut, though it would pass
    }
    assert_int_equal(teach(&o, &s, &e), 0);
    assert_int_equal(judged, 3);
    assert_true(s.cached == 5 && s.unasked == 0 && s.cut == 1 && s.without_program == 1);
    assert_true(s.passed == 1 && s.failed == 1 && s.unjudged == 1 && s.tokens == 90);
    assert_int_equal(jsonl_each(data, count_line, kinds, &e), 0);
    assert_true(json_object_size(kinds) == 2 && json_i64(kinds, "generate", 0) == 1 &&
                json_i64(kinds, "review", 0) == 1);
    json_decref(kinds);
    assert_int_equal(dir_remove(dir, &e), 0);
    free(dir), free(path), free(answers), free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(costs),        cmocka_unit_test(rewrites),
                                       cmocka_unit_test(kill_scores), cmocka_unit_test(nests_in_place),
                                       cmocka_unit_test(domains), cmocka_unit_test(four_at_once),
                                       cmocka_unit_test(four_along_rows), cmocka_unit_test(bounds),
                                       cmocka_unit_test(answers_become_records)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
