/* test_harvest.c - failures become repair dialogues with the judge's words and the nearest answer; the judge is a
 * stub. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../lib/fake_verdict.h"
#include "base/json.h"
#include "base/log.h"
#include "../lib/tiny.h"
#include "train/harvest.h"

static int asked;
static bool all_pass;

static json_t *fake_judge(const struct verdict_request *item)
{
    asked++;
    assert_int_equal(strncmp(item->task_code, "task ", 5), 0);
    assert_string_equal(item->task_code + 5, item->task_name + 1); // the task belongs to its name
    assert_true(item->is_response);
    if (all_pass || asked % 4 == 1)
        return json_pack("{s:s,s:n,s:f}", "status", "passed", "category", "reward", 1.0);
    if (asked % 4 == 2)
        return json_pack("{s:s,s:s,s:n}", "status", "infra", "category", "infra", "reward");
    return json_pack("{s:s,s:s,s:f,s:s}", "status", "failed", "category", "compile_error", "reward", -1.0, "feedback",
                     "the judge's words");
}

static char *data_file(void)
{
    char *path = tiny_path("harvest.jsonl");
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 2; k++)
            buf_addf(&b, "{\"kind\":\"generate\",\"messages\":[{\"role\":\"user\",\"content\":\"make %d\"},"
                         "{\"role\":\"assistant\",\"content\":\"x\"}],\"task\":{\"name\":\"t%d\",\"code\":\"task %d\"},"
                         "\"kernel\":{\"code\":\"answer %d of %d\\n\"}}\n", i, i, i, k, i);
    tiny_must(file_write(path, b.p, b.n, NULL), NULL);
    buf_free(&b);
    return path;
}

static int read_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    (void)line, (void)e;
    json_array_append(ctx, v);
    return 0;
}

static struct harvest_options options(char *init, char *data, char *out)
{
    return (struct harvest_options){.model = init, .data = data, .out = out, .samples = 2, .max_new = 12, .chunk = 2,
                                    .temperature = 1, .seed = 3};
}

static void failures_become_repairs(void **state)
{
    char *init = tiny_path("init"), *data = data_file(), *out = tiny_path("h"), *own = path_join(out, "own.jsonl");
    char *stats = path_join(out, "harvest_stats.json");
    struct harvest_options o = options(init, data, out);
    json_t *lines = json_array(), *v, *st;
    struct err e = ERR_INIT;
    size_t i;
    (void)state;

    tiny_must(harvest_collect(&o, &e), &e);
    st = json_read(stats, &e);
    assert_int_equal(json_i64(st, "tasks", 0), 5);
    assert_int_equal(json_i64(st, "samples", 0), 10);
    assert_in_range(json_i64(st, "failed", 0), 3, 7);
    assert_int_equal(json_i64(st, "own", 0), json_i64(st, "failed", 0));
    assert_int_equal(jsonl_each(own, read_line, lines, &e), 0);
    assert_int_equal(json_array_size(lines), json_i64(st, "failed", 0));
    json_array_foreach(lines, i, v) {
        const json_t *m = json_object_get(v, "messages");
        const char *asks = json_str(json_array_get(m, 0), "content", "");
        const char *task = json_str(json_object_get(v, "task"), "name", "");
        const char *answer = json_str(json_array_get(m, 3), "content", "");
        char want[32];
        assert_string_equal(json_str(v, "kind", ""), "own");
        assert_int_equal(json_array_size(m), 4);
        assert_string_equal(asks + 5, task + 1); // the dialogue is the task's
        assert_non_null(strstr(json_str(json_array_get(m, 2), "content", ""), "the judge's words"));
        assert_non_null(strstr(answer, "it does not compile"));
        snprintf(want, sizeof want, " of %s\n```", task + 1); // one of its own answers
        assert_non_null(strstr(answer, want));
    }
    asked = 0;
    tiny_must(harvest_collect(&o, &e), &e); // everything is there
    assert_int_equal(asked, 0);
    json_decref(st), json_decref(lines);
    free(init), free(data), free(out), free(own), free(stats);
}

static void nothing_to_mend(void **state)
{
    char *init = tiny_path("init"), *data = data_file(), *out = tiny_path("h2"), *own = path_join(out, "own.jsonl");
    struct harvest_options o = options(init, data, out);
    struct err e = ERR_INIT;
    (void)state;

    all_pass = true;
    o.tasks = 3;
    tiny_must(harvest_collect(&o, &e), &e);
    assert_true(file_exists(own)); // empty: training goes on without
    free(data);
    o.data = data = tiny_path("prompts.jsonl");
    free(out);
    o.out = out = tiny_path("h3");
    assert_int_equal(harvest_collect(&o, &e), -1);
    assert_non_null(strstr(e.msg, "harvest.jsonl"));
    free(init), free(data), free(out), free(own);
}

/* Failures that few lines mend become edits; those that are further off are left out. */
static void failures_become_edits(void **state)
{
    char *init = tiny_path("init"), *data = tiny_path("edits.jsonl"), *out = tiny_path("h4");
    char *own = path_join(out, "own.jsonl");
    struct harvest_options o = options(init, data, out);
    json_t *lines = json_array();
    struct err e = ERR_INIT;
    struct buf b;
    (void)state;

    all_pass = false;
    buf_init(&b, BUF_MAX_TEXT);
    buf_adds(&b,
             "{\"messages\":[{\"role\":\"user\",\"content\":\"make 1\"},{\"role\":\"assistant\",\"content\":\"x\"}],"
                 "\"task\":{\"name\":\"t1\",\"code\":\"task 1\"},\"kernel\":{\"code\":\"no kernel\"}}\n");
    tiny_must(file_write(data, b.p, b.n, &e), &e);
    o.edits = true, o.samples = 8;
    tiny_must(harvest_collect(&o, &e), &e);
    assert_int_equal(jsonl_each(own, read_line, lines, &e), 0);
    assert_int_equal(json_array_size(lines), 0); // the tiny model writes no kernel at all
    json_decref(lines);
    buf_free(&b);
    free(init), free(data), free(out), free(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(failures_become_repairs), cmocka_unit_test(nothing_to_mend),
                                       cmocka_unit_test(failures_become_edits)};
    int rc;

    log_set_level(LOG_ERROR);
    tiny_make();
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    tiny_remove();
    return rc;
}
