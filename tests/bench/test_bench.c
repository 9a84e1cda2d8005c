/* test_bench.c - the whole benchmark with a tiny random model and a judge of our own (see fake_verdict.h): counts
 * against hand-made samples, several turns, resuming after Ctrl-C in the middle of judging gives the result of an
 * undisturbed run, and bad input is refused with one line. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "bench/bench_run.h"
#include "bench/suite.h"
#include "nn/model.h"
#include "nn/tokenizer.h"

#include "../lib/fake_verdict.h"

/* ---- the judge: "PASS" and "INFRA" in a text decide; else a hash of it ---- */

static const char *status_of(const char *text)
{
    if (strstr(text, "INFRA"))
        return "infra";
    if (strstr(text, "PASS"))
        return "passed";
    return !strstr(text, "FAIL") && hash64(text, strlen(text), 5) % 3 == 0 ? "passed" : "failed";
}

static bool hashed_complaints;                         /* every program is told something else */
static const char *complaint = "line 3: expected ';'"; /* the feedback of a failure */

static json_t *fake_judge(const struct verdict_request *item)
{
    const char *status = status_of(item->candidate);
    char hashed[32];
    bool passed = !strcmp(status, "passed");

    snprintf(hashed, sizeof hashed, "line %llu",
             (unsigned long long)hash64(item->candidate, strlen(item->candidate), 9) % 1000);
    json_t *v = json_pack("{s:s,s:s?,s:s,s:s,s:b,s:n}", "status", status, "category",
                          passed ? NULL : !strcmp(status, "infra") ? "infra" : "compile_error", "backend", "sim",
                          "feedback",
                          passed ? "fine" : hashed_complaints ? hashed : complaint, "response", item->is_response,
                          "performance");

    if (strcmp(status, "infra"))
        json_object_set_new(v, "reward", json_real(passed ? 1 : -1));
    if (strstr(item->candidate, "FAST"))
        json_object_set_new(v, "performance", json_pack("{s:f,s:f}", "speedup_eager", 2.0, "speedup_compile", 1.05));
    return v;
}

/* ---- a folder with tasks and a model ---- */

static char *dir, *model_dir, *tasks_dir;

static void put(const char *name, const char *text)
{
    struct err e = ERR_INIT;
    char *path = path_join(dir, name), *slash = strrchr(path, '/');

    *slash = 0;
    assert_int_equal(dir_make(path, &e), 0);
    *slash = '/';
    assert_int_equal(file_write(path, text, strlen(text), &e), 0);
    free(path);
}

#define TASK "class Model:\n    pass\ndef get_inputs():\n    return []\ndef get_init_inputs():\n    return []\n"

static int make_model(struct err *e)
{
    static const char config[] =
        "{\"model_type\":\"qwen3\",\"architectures\":[\"Qwen3ForCausalLM\"],\"vocab_size\":912,\"hidden_size\":32,"
        "\"intermediate_size\":64,"
        "\"num_hidden_layers\":2,\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":16,"
        "\"max_position_embeddings\":400,"
        "\"rms_norm_eps\":1e-6,\"rope_theta\":10000,\"initializer_range\":0.2,\"tie_word_embeddings\":true,"
        "\"eos_token_id\":902}";
    json_t *json = json_parse(config, strlen(config), "config", e);
    struct model_config c;
    struct model *m;
    char *to = path_join(model_dir, "tokenizer.json");
    int rc = model_config_parse(json, &c, e);

    json_decref(json);
    if (rc < 0 || !(m = model_init(&c, 7, e)))
        return -1;
    rc = model_save(m, model_dir, e);
    if (rc == 0)
        rc = file_copy("tests/nn/data/tok_qwen3.json", to, e);
    model_config_free(&c);
    model_free(m);
    free(to);
    return rc;
}

static int setup(void **state)
{
    struct err e = ERR_INIT;

    if (!(dir = dir_temp("bench", &e)))
        return -1;
    model_dir = path_join(dir, "model");
    tasks_dir = path_join(dir, "tasks");
    put("tasks/chain_2.py", TASK);
    put("tasks/chain_10.py", TASK "# ten\n");
    put("tasks/scan_1.py", TASK "# scan\n");
    if (make_model(&e) < 0)
        fail_msg("%s", e.msg);
    log_set_level(LOG_ERROR);
    return 0;
}

static int teardown(void **state)
{
    struct err e = ERR_INIT;
    int rc = dir_remove(dir, &e);

    free(dir);
    free(model_dir);
    free(tasks_dir);
    return rc;
}

static struct bench_options options(const char *out)
{
    return (struct bench_options){.model = model_dir, .tasks = tasks_dir, .out = out, .samples = 4, .turns = 2,
                                  .max_new = 12,
                                  .temperature = 1, .top_p = 1, .seed = 3};
}

static json_t *run(const struct bench_options *o)
{
    struct err e = ERR_INIT;
    json_t *v = NULL;

    if (bench_run(o, &v, &e) < 0)
        fail_msg("%s", e.msg);
    return v;
}

static char *samples_of(const char *out)
{
    struct err e = ERR_INIT;
    char *path = path_join(out, "samples.jsonl");
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    assert_int_equal(file_read(path, &b, &e), 0);
    free(path);
    return buf_detach(&b);
}

static int count(const char *text, const char *what)
{
    int n = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

static void test_model(void **state)
{
    char *out = path_join(dir, "run"), *text;
    struct bench_options o = options(out);
    json_t *v = run(&o), *again;
    double first = json_f64(v, "avg_at_8", -1), best = json_f64(v, "best_avg_at_8", -1);
    int n = fake_judged;

    assert_int_equal(json_i64(v, "tasks", 0), 3);
    assert_int_equal(json_i64(v, "k", 0), 4);
    assert_true(first >= 0 && best >= first && best <= 1);
    assert_true(json_is_null(json_object_get(v, "faster_eager")));
    assert_string_equal(json_str(v, "backend", ""), "sim");
    assert_string_equal(json_str(v, "name", ""), "run");
    assert_int_equal(json_object_size(json_object_get(v, "families")), 2);
    text = samples_of(out);
    assert_int_equal(count(text, "\"turn\":1"), 12);
    assert_true(count(text, "\"turn\":2") == (int)round(12 - 12 * first)); /* each failure has a second turn */
    again = run(&o); /* all there: nothing is sampled or judged again */
    assert_int_equal(fake_judged, n);
    assert_true(json_equal(v, again));
    json_decref(v);
    json_decref(again);
    free(text);
    free(out);
}

static void alter(const char *path, const char *from, const char *to)
{
    struct err e = ERR_INIT;
    struct buf b;
    char *at;

    buf_init(&b, BUF_MAX_TEXT);
    assert_int_equal(file_read(path, &b, &e), 0);
    at = strstr(b.p, from);
    assert_non_null(at);
    assert_int_equal(strlen(from), strlen(to));
    memcpy(at, to, strlen(to));
    assert_int_equal(file_write(path, b.p, b.n, &e), 0);
    buf_free(&b);
}

/* A row that was altered, or moved to another task's, is dropped and judged again. */
static void test_altered_rows(void **state)
{
    char *out = path_join(dir, "altered"), *path = path_join(out, "verdicts.jsonl");
    struct bench_options o = options(out);
    json_t *v, *again;
    int n;

    (void)state;
    o.turns = 1;
    v = run(&o);
    n = fake_judged;
    alter(path, "\"status\":\"failed\"", "\"status\":\"passed\"");
    again = run(&o);
    assert_int_equal(fake_judged, n + 1);
    assert_true(json_f64(v, "avg_at_8", -1) == json_f64(again, "avg_at_8", -2));
    json_decref(again);
    alter(path, "\"sample\":1,", "\"sample\":0,");
    again = run(&o);
    assert_int_equal(fake_judged, n + 2);
    assert_true(json_f64(v, "avg_at_8", -1) == json_f64(again, "avg_at_8", -2));
    json_decref(again), json_decref(v);
    free(out), free(path);
}

struct wholes {
    int all, cut, passed;
};

static int count_whole(json_t *v, size_t line, void *ctx, struct err *e)
{
    struct wholes *w = ctx;
    bool cut = json_flag(v, "cut", false);

    (void)line, (void)e;
    w->all++;
    w->cut += cut;
    w->passed += !cut && !strcmp(status_of(json_str(v, "text", "")), "passed");
    return 0;
}

static int sum_of_tasks(const json_t *result, const char *key)
{
    const json_t *row;
    size_t i;
    int sum = 0;

    json_array_foreach(json_object_get(result, "per_task"), i, row)
        sum += (int)json_i64(row, key, -1);
    return sum;
}

/* What the limit cut off is told apart from what is wrong. */
static void test_whole_answers(void **state)
{
    char *out = path_join(dir, "whole"), *path = path_join(out, "samples.jsonl");
    struct bench_options o = options(out);
    struct wholes w = {0};
    struct err e = ERR_INIT;
    json_t *v;

    (void)state;
    o.samples = 16, o.turns = 1, o.max_new = 300;
    v = run(&o);
    assert_int_equal(jsonl_each(path, count_whole, &w, &e), 0);
    assert_true(w.all == 48 && w.cut > 0 && w.cut < 48 && w.passed > 0);
    assert_true(fabs(json_f64(v, "cut_share", 0) - w.cut / 48.0) < 1e-9);
    assert_true(fabs(json_f64(v, "whole_pass_rate", 0) - (double)w.passed / (w.all - w.cut)) < 1e-9);
    assert_int_equal(sum_of_tasks(v, "whole"), w.all - w.cut);
    assert_int_equal(sum_of_tasks(v, "whole_passed"), w.passed);
    json_decref(v);
    free(out), free(path);
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of one turn, sorted: threads write them in any order. */
static char *turn_of(const char *out, const char *turn)
{
    char *text = samples_of(out), *line[256], *save = NULL;
    struct buf b;
    int n = 0;

    for (char *s = strtok_r(text, "\n", &save); s && n < 256; s = strtok_r(NULL, "\n", &save))
        if (strstr(s, turn))
            line[n++] = s;
    qsort(line, (size_t)n, sizeof *line, compare_lines);
    buf_init(&b, BUF_MAX_TEXT);
    for (int i = 0; i < n; i++)
        buf_adds(&b, line[i]);
    free(text);
    return buf_detach(&b);
}

/* The second turn reads the judge's feedback: other words, other answers. Some of them pass, and count as best only. */
static void test_feedback(void **state)
{
    char *a = path_join(dir, "words"), *b = path_join(dir, "other_words"), *one[2], *two[2];
    struct bench_options p = options(a), q = options(b);
    json_t *v;

    p.samples = q.samples = 8;
    p.top_p = q.top_p = 0.9;
    v = run(&p);
    assert_true(json_f64(v, "best_avg_at_8", 0) > json_f64(v, "avg_at_8", 1));
    json_decref(v);
    complaint = "something else";
    json_decref(run(&q));
    complaint = "line 3: expected ';'";
    one[0] = turn_of(a, "\"turn\":1"), one[1] = turn_of(b, "\"turn\":1");
    two[0] = turn_of(a, "\"turn\":2"), two[1] = turn_of(b, "\"turn\":2");
    assert_true(*one[0]);
    assert_string_equal(one[0], one[1]);
    assert_string_not_equal(two[0], two[1]);
    for (int i = 0; i < 2; i++)
        free(one[i]), free(two[i]);
    free(a);
    free(b);
}

/* Controls: the same first turns, other second ones; and a folder is one of them only. */
static void test_feedback_controls(void **state)
{
    static const char *const names[] = {"own", "shuffled", "none"};
    char *one[3], *two[3], *out[3];
    struct err e = ERR_INIT;
    enum bench_feedback f;

    for (int i = 0; i < 3; i++) {
        struct bench_options o;
        json_t *v;

        out[i] = path_join(dir, names[i]);
        o = options(out[i]);
        o.samples = 8;
        o.top_p = 0.9;
        assert_int_equal(bench_feedback_parse(names[i], &o.feedback, &e), 0);
        hashed_complaints = true;
        v = run(&o);
        hashed_complaints = false;
        double first = json_f64(v, "avg_at_8", 0), best = json_f64(v, "best_avg_at_8", 0);
        assert_true(fabs(json_f64(v, "recovery", -1) - (best - first) / (1 - first)) < 1e-9);
        json_decref(v);
        one[i] = turn_of(out[i], "\"turn\":1"), two[i] = turn_of(out[i], "\"turn\":2");
        assert_string_equal(one[i], one[0]);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(two[i], two[k]);
        o.feedback = i ? BENCH_FEEDBACK_OWN : BENCH_FEEDBACK_NONE;
        assert_int_equal(bench_run(&o, &v, &e), -1);
        assert_non_null(strstr(e.msg, "another 'feedback'"));
    }
    assert_int_equal(bench_feedback_parse("some", &f, &e), -1);
    for (int i = 0; i < 3; i++)
        free(one[i]), free(two[i]), free(out[i]);
}

/* Another failure's words: of the same category where there are some, never one's own words where others were said. */
static void test_shuffled_words_are_alike(void **state)
{
    static const char *const said[][2] = {{"compile_error", "c1"}, {"correctness_error", "v1"},
                                          {"correctness_error", "v2"},
                                          {"compile_error", "c2"}, {"runtime_error", "r1"}, {"compile_error", "c1"}};
    int n_samples[] = {6};
    struct bench_slot slots[6] = {0};
    struct bench_run b = {.o = {.samples = 6, .turns = 2, .feedback = BENCH_FEEDBACK_SHUFFLED}, .suite.n = 1,
                          .slots = slots, .n_samples = n_samples};

    (void)state;
    for (int i = 0; i < 6; i++)
        slots[i].turn[0].verdict = json_pack("{s:s,s:s,s:s}", "status", "failed", "category", said[i][0], "feedback",
                                             said[i][1]);
    assert_string_equal(bench_feedback_shown(&b, 0, 0, 0), "c2");
    assert_string_equal(bench_feedback_shown(&b, 0, 5, 0), "c2");
    assert_string_equal(bench_feedback_shown(&b, 0, 1, 0), "v2");
    assert_string_equal(bench_feedback_shown(&b, 0, 2, 0), "v1");
    assert_string_not_equal(bench_feedback_shown(&b, 0, 4, 0), "r1"); // alone of its kind: of any
    for (int i = 0; i < 6; i++)
        json_decref(slots[i].turn[0].verdict);
}

static void check_same_lines(char *a, char *b)
{
    char *x[64], *y[64];
    int n = 0, m = 0;

    for (char *s = strtok(a, "\n"); s; s = strtok(NULL, "\n"))
        x[n++] = s;
    for (char *s = strtok(b, "\n"); s; s = strtok(NULL, "\n"))
        y[m++] = s;
    assert_int_equal(n, m);
    qsort(x, (size_t)n, sizeof *x, compare_lines);
    qsort(y, (size_t)m, sizeof *y, compare_lines);
    for (int i = 0; i < n; i++)
        assert_string_equal(x[i], y[i]);
}

/* Stopped again and again while judging, with half a line left behind: the same samples and the same numbers. */
static void test_resume(void **state)
{
    char *whole = path_join(dir, "run"), *out = path_join(dir, "resumed"), *a, *b;
    struct bench_options o = options(whole), p = options(out);
    json_t *want = run(&o), *got = NULL;
    struct err e = ERR_INIT;
    int stops = 0;

    p.name = "run";
    for (fake_stop_after = fake_judged + 2; bench_run(&p, &got, &e) < 0; fake_stop_after = fake_judged + 2) {
        char *path = path_join(out, "samples.jsonl");
        assert_int_equal(e.kind, ERR_STOP);
        assert_int_equal(file_append(path, "{\"task\":\"chain_2\",\"sam", 22, &e), 0);
        free(path);
        assert_true(++stops < 20);
    }
    fake_stop_after = 0;
    assert_true(stops > 2);
    json_object_del(want, "seconds");
    json_object_del(got, "seconds");
    assert_true(json_equal(want, got));
    a = samples_of(whole);
    b = samples_of(out);
    check_same_lines(a, b);
    free(a);
    free(b);
    json_decref(want);
    json_decref(got);
    free(whole);
    free(out);
}

static void test_settings(void **state)
{
    char *out = path_join(dir, "run");
    struct bench_options o = options(out);
    struct err e = ERR_INIT;
    json_t *v;

    o.seed = 4;
    assert_int_equal(bench_run(&o, &v, &e), -1);
    assert_int_equal(e.kind, ERR_INPUT);
    assert_non_null(strstr(e.msg, "another 'seed'"));
    o = options(out);
    o.profile = "s80";
    assert_int_equal(bench_run(&o, &v, &e), -1);
    assert_non_null(strstr(e.msg, "another 'profile'"));
    o = options(out);
    o.secret = "fingerprint";
    assert_int_equal(bench_run(&o, &v, &e), -1);
    assert_non_null(strstr(e.msg, "another 'secret'"));
    free(out);
}

static void test_foreign(void **state)
{
    char *out = path_join(dir, "foreign"), *samples = path_join(dir, "samples");
    struct bench_options o = {.samples_dir = samples, .tasks = tasks_dir, .out = out, .samples = 4, .turns = 1};
    const json_t *t;
    json_t *v;
    struct err e = ERR_INIT;

    put("samples/chain_2/1.py", "PASS FAST");
    put("samples/chain_2/2.txt", "FAIL");
    put("samples/chain_2/10.md", "INFRA");
    put("samples/chain_10_0.py", "FAIL a");
    put("samples/chain_10_sample_1.py", "FAIL b");
    assert_int_equal(bench_run(&o, &v, &e), -1);
    assert_non_null(strstr(e.msg, "no sample for task 'scan_1'"));
    put("samples/scan_1.py", "PASS");
    v = run(&o);
    t = json_array_get(json_object_get(v, "per_task"), 0);
    assert_string_equal(json_str(t, "task", ""), "chain_2"); /* natural order; the infra sample does not count */
    assert_int_equal(json_i64(t, "n", 0), 2);
    assert_int_equal(json_i64(t, "passed", 0), 1);
    assert_true(fabs(json_f64(v, "avg_at_8", 0) - (0.5 + 0 + 1) / 3) < 1e-12);
    assert_true(fabs(json_f64(v, "pass_at_8", 0) - 2.0 / 3) < 1e-12);
    assert_int_equal(json_i64(v, "infra", 0), 1);
    assert_true(fabs(json_f64(v, "faster_eager", 0) - 1 / 5.0) < 1e-12); /* 1 of 5 judged candidates */
    assert_true(json_f64(v, "faster_compile", 1) == 0);
    json_decref(v);
    free(out);
    free(samples);
}

/* A byte amid the weights is another model, in a file that is too large to be read each time. */
static void test_changed_weights(void **state)
{
    char *out = path_join(dir, "weights");
    struct bench_options o = options(out);
    char *path = path_join(o.model, "more.safetensors");
    struct err e = ERR_INIT;
    json_t *v = NULL;
    int fd = open(path, O_WRONLY | O_CREAT, 0600);

    assert_int_equal(ftruncate(fd, 32 << 20), 0);
    json_decref(run(&o));
    json_decref(run(&o));
    assert_int_equal(pwrite(fd, "x", 1, (1 << 20) + 100000), 1);
    assert_int_equal(bench_run(&o, &v, &e), -1);
    assert_non_null(strstr(e.msg, "another 'model'"));
    close(fd);
    unlink(path);
    free(path), free(out);
}

/* The same folder with other programs is another benchmark, whatever its name. */
static void test_changed_samples(void **state)
{
    char *out = path_join(dir, "changed"), *samples = path_join(dir, "changing");
    struct bench_options o = {.samples_dir = samples, .tasks = tasks_dir, .out = out, .samples = 1, .turns = 1};
    struct err e = ERR_INIT;
    json_t *v = NULL;

    put("changing/chain_2.py", "PASS");
    put("changing/chain_10.py", "PASS \xFF");
    put("changing/scan_1.py", "PASS");
    json_decref(run(&o));
    json_decref(run(&o));
    put("changing/scan_1.py", "FAIL");
    assert_int_equal(bench_run(&o, &v, &e), -1);
    assert_non_null(strstr(e.msg, "scan_1.py' is not the sample"));
    free(out), free(samples);
}

static void test_names_that_meet(void **state)
{
    char *out = path_join(dir, "meet"), *samples = path_join(dir, "meeting"), *tasks = path_join(dir, "meeting_tasks");
    struct bench_options o = {.samples_dir = samples, .tasks = tasks, .out = out, .samples = 8, .turns = 1};
    const json_t *rows;
    json_t *v;

    put("meeting_tasks/relu.py", TASK);
    put("meeting_tasks/relu_2.py", TASK "# two\n");
    put("meeting/relu_0.py", "PASS");
    put("meeting/relu_2.py", "FAIL");
    v = run(&o);
    rows = json_object_get(v, "per_task");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(json_i64(json_array_get(rows, i), "n", 0), 1);
        assert_int_equal(json_i64(json_array_get(rows, i), "passed", 9), i == 0);
    }
    json_decref(v);
    free(out), free(samples), free(tasks);
}

static void test_names_that_are_no_text(void **state)
{
    char *tasks = path_join(dir, "odd");
    struct err e = ERR_INIT;
    struct suite s;

    put("odd/t\xFF.py", TASK);
    assert_int_equal(suite_load(tasks, 0, &s, &e), -1);
    assert_int_equal(e.kind, ERR_INPUT);
    assert_non_null(strstr(e.msg, "rename the file"));
    free(tasks);
}

/* A folder that somebody else fills is no place for a benchmark. */
static void test_foreign_out(void **state)
{
    char *out = path_join(dir, "theirs"), *samples = path_join(dir, "theirs");
    struct bench_options o = {.samples_dir = samples, .tasks = tasks_dir, .out = out, .samples = 1, .turns = 1};
    struct err e = ERR_INIT;
    json_t *v = NULL;

    put("theirs/chain_2.py", "PASS");
    assert_int_equal(bench_run(&o, &v, &e), -1);
    assert_non_null(strstr(e.msg, "are not of this benchmark"));
    free(out), free(samples);
}

static void test_bad_options(void **state)
{
    char *out = path_join(dir, "bad");
    struct {
        struct bench_options o;
        const char *says;
    } cases[] = {
        {{.tasks = tasks_dir, .out = out}, "either a model or a folder of samples"},
        {{.tasks = tasks_dir, .out = out, .model = "m", .samples_dir = "s"}, "either a model or a folder of samples"},
        {{.tasks = "/nonexistent", .out = out, .model = model_dir}, "/nonexistent"},
        {{.tasks = tasks_dir, .out = out, .model = "/nonexistent"}, "/nonexistent"},
        {{.tasks = tasks_dir, .out = out, .model = model_dir, .temperature = -1}, "temperature -1"},
        {{.tasks = tasks_dir, .out = out, .model = model_dir, .top_p = 2}, "top-p 2"},
        {{.tasks = tasks_dir, .out = out, .model = model_dir, .turns = 99}, "99 turns"},
        {{.tasks = tasks_dir, .out = out, .samples_dir = "s", .turns = 2}, "one turn"},
        {{.tasks = tasks_dir, .out = out, .samples_dir = "/nonexistent"}, "/nonexistent"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = ERR_INIT;
        json_t *v;
        assert_int_equal(bench_run(&cases[i].o, &v, &e), -1);
        if (!strstr(e.msg, cases[i].says) || strchr(e.msg, '\n'))
            fail_msg("case %zu: '%s' does not say '%s'", i, e.msg, cases[i].says);
        dir_remove(out, &e);
    }
    free(out);
}

static void check_table(const json_t *result, const char *first, const char *heading, const char *row)
{
    const json_t *list[] = {result};
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);

    bench_table(out, list, 1);
    fclose(out);
    if (!strstr(text, first) || !strstr(text, heading) || !strstr(text, row))
        fail_msg("the table is:\n%s", text);
    free(text);
}

/* Pass@k is headed by its k, an average by the samples it is of: the keys keep their names. */
static void test_heading(void **state)
{
    json_t *v = json_pack("{s:s,s:i,s:i,s:i,s:i,s:f,s:f,s:f,s:f}", "name", "m", "tasks", 2, "samples", 16, "k", 8,
                          "turns", 2, "temperature", 0.5, "top_p", 1.0, "pass_at_1", 0.25, "pass_at_8", 0.5);

    (void)state;
    check_table(v, "16 samples, T 0.5, top-p 1,",
                "    Pass@1    Pass@8    Avg@16  best P@8 best A@16    faster   cut off  of whole  infra",
                "     25.0%     50.0%         -");
    json_object_set_new(v, "turns", json_integer(1)); /* each number once */
    json_object_set_new(v, "temperature", json_null()); /* nobody here sampled */
    check_table(v, "16 samples, backend", "    Pass@1    Pass@8    Avg@16    faster", "     25.0%     50.0%         -");
    json_object_set_new(v, "samples", json_integer(1));
    json_object_set_new(v, "k", json_integer(1));
    check_table(v, "1 sample, backend", "    Pass@1    faster", "     25.0%         -");
    json_decref(v);
}

static char *published(const char *suite, int tasks)
{
    json_t *v = json_pack("{s:s,s:s,s:s,s:i,s:i,s:f,s:f,s:n}", "name", "mine", "suite", suite, "backend", "cuda",
                          "tasks", tasks, "k", 8, "pass_at_8", 0.5, "avg_at_8", 0.25, "faster_eager");
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);

    bench_published(out, v);
    fclose(out);
    json_decref(v);
    return text;
}

/* Figures of others are marked as such, and a run of other tasks says that it does not compare. */
static void test_published(void **state)
{
    char *whole = published("kernelbench:x", 250), *part = published("kernelbench:x", 12), *musa, *none;

    assert_non_null(strstr(whole, "published by the MusaCoder paper, not measured here"));
    assert_non_null(strstr(whole, "MusaCoder-27B-RL                93.2%    88.6%    15.0%     9.2%\n"));
    assert_non_null(strstr(whole, "mine (of 8)                     50.0%    25.0%        -        -\n"));
    assert_null(strstr(whole, "does not compare"));
    assert_non_null(strstr(part, "of other tasks than levels 1 to 3, so it does not compare"));
    musa = published("musa-kernelbench:x", 250);
    assert_non_null(strstr(musa, "92.4%    81.7%    12.5%        -"));
    none = published("some/folder", 250);
    assert_string_equal(none, "");
    free(whole);
    free(part);
    free(musa);
    free(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_model),   cmocka_unit_test(test_resume),      cmocka_unit_test(test_settings),
        cmocka_unit_test(test_altered_rows),
        cmocka_unit_test(test_feedback),
        cmocka_unit_test(test_feedback_controls), cmocka_unit_test(test_shuffled_words_are_alike),
        cmocka_unit_test(test_foreign), cmocka_unit_test(test_whole_answers),
        cmocka_unit_test(test_changed_samples),
        cmocka_unit_test(test_changed_weights),
        cmocka_unit_test(test_names_that_meet),
        cmocka_unit_test(test_names_that_are_no_text),
        cmocka_unit_test(test_foreign_out), cmocka_unit_test(test_heading), cmocka_unit_test(test_bad_options),
    };

    return cmocka_run_group_tests_name("bench", tests, setup, teardown);
}
