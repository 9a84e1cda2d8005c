/* test_report.c - a report's data: stages with intervals, examples, what is missing or broken in a run folder; and a
 * page that loads nothing and from which no text of the data gets out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "report/page.h"
#include "report/report.h"

static char *dir;

static int setup(void **state)
{
    struct err e = ERR_INIT;

    return (dir = dir_temp("report", &e)) ? 0 : -1;
}

static int teardown(void **state)
{
    struct err e = ERR_INIT;
    int rc = dir_remove(dir, &e);

    free(dir);
    return rc;
}

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

static json_t *build(void)
{
    struct err e = ERR_INIT;
    json_t *page;

    if (report_data(dir, &page, &e) < 0)
        fail_msg("%s", e.msg);
    return page;
}

static char *html_of(const json_t *page)
{
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    page_add(page, &b);
    return buf_detach(&b);
}

static int count(const char *text, const char *what)
{
    int n = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

static void test_empty_run(void **state)
{
    struct err e = ERR_INIT;
    json_t *page = build(), *none;

    assert_string_equal(json_str(page, "kind", ""), "bench");
    assert_int_equal(json_array_size(json_object_get(page, "stages")), 0);
    json_decref(page);
    assert_int_equal(report_data("/nonexistent", &none, &e), -1);
}

#define EVIL "<script>alert(1)</script>\\\"'&"
#define BENCH( \
    avg)                                                                                                          \
    "{\"schema\":\"musacoder.bench/1\",\"name\":\"x\",\"tasks\":2,\"samples\":8,\"turns\":2,\"backend\":\"sim\"," \
    "\"pass_at_8\":1," \
    "\"avg_at_8\":" avg ",\"best_avg_at_8\":0.75,\"faster_eager\":null,\"categories\":{\"passed\":8," \
                        "\"compile_error\":8},"   \
    "\"families\":{\"" EVIL "\":{\"tasks\":1,\"avg_at_8\":1},"                                \
    "\"b\":{\"tasks\":1,\"avg_at_8\":\"nan\"}},"                                                          \
    "\"per_task\":[{\"task\":\"" EVIL "\",\"n\":8,\"passed\":8},{\"task\":\"b_1\",\"n\":0,\"passed\":0}],\"seconds\":3}"

static void put_run(void)
{
    put("summary.json", "{\"held_out_tasks\":2,\"seconds\":61,\"stages\":[{\"name\":\"sft\"},{\"name\":\"rl\"}]}");
    put("recipe.yaml", "name: <b>x</b>\n");
    put("bench/rl/bench.json", BENCH("0.5"));
    put("bench/sft/bench.json", BENCH("0.25"));
    put("bench/sft/verdicts.jsonl", "");
    put("bench/rl/samples.jsonl",
        "{\"task\":\"" EVIL "\",\"sample\":0,\"turn\":1,"
        "\"text\":\"```python\\nclass ModelNew: pass # " EVIL "\\n```\"}\n"
        "{\"task\":\"" EVIL "\",\"sample\":1,\"turn\":1,\"text\":\"first try\"}\n"
        "{\"task\":\"" EVIL "\",\"sample\":1,\"turn\":2,\"text\":\"second try\"}\n");
    put("bench/rl/verdicts.jsonl",
        "{\"task\":\"" EVIL "\",\"family\":\"f\",\"sample\":0,\"turn\":1,\"verdict\":{\"status\":\"passed\","
                            "\"feedback\":\"" EVIL "\"}}\n"
        "{\"task\":\"" EVIL "\",\"family\":\"f\",\"sample\":1,\"turn\":1,\"verdict\":{\"status\":\"failed\","
                            "\"category\":\"timeout\"}}\n"
        "{\"task\":\"" EVIL "\",\"family\":\"f\",\"sample\":1,\"turn\":2,\"verdict\":{\"status\":\"passed\"}}\n");
    put("metrics.jsonl",
        "{\"stage\":\"sft\",\"step\":1,\"loss\":4,\"val_loss\":\"nan\"}\n{\"stage\":\"sft\",\"step\":2,\"loss\":3}\n"
        "{\"stage\":\"rl\",\"step\":1,\"reward\":0.1,\"entropy\":0.5,\"masked_share\":0}\n"
        "{\"stage\":\"rl\",\"step\":2,\"reward\":0.2,\"entropy\":\"inf\",\"masked_share\":0}\n{\"stage\":\"rl\",\"st");
}

static const json_t *stage(const json_t *page, size_t i)
{
    return json_array_get(json_object_get(page, "stages"), i);
}

static void test_data(void **state)
{
    json_t *page, *change, *turns;
    const char *name;

    put_run();
    log_set_level(LOG_ERROR);
    page = build();
    log_set_level(LOG_INFO);
    assert_string_equal(json_str(page, "kind", ""), "run");
    assert_string_equal(json_str(stage(page, 0), "name", ""), "sft");
    assert_string_equal(json_str(stage(page, 1), "name", ""), "rl");
    assert_true(json_is_null(json_object_get(stage(page, 0), "change")));
    // one judged task, equal on both sides: no difference, and an interval that says how little that is
    change = json_object_get(stage(page, 1), "change");
    assert_true(json_f64(change, "difference", 1) == 0);
    assert_true(json_real_value(json_array_get(json_object_get(change, "ci"), 1)) > 0.7);
    name = json_str(page, "title", "");
    assert_true(strlen(name) > 0 && !strchr(name, '/'));
    turns = json_object_get(json_array_get(json_object_get(json_object_get(page, "examples"), "repaired"), 0), "turns");
    assert_int_equal(json_array_size(turns), 2);
    assert_string_equal(json_str(json_array_get(turns, 0), "code", ""), "first try");
    assert_string_equal(json_str(json_array_get(turns, 1), "code", ""), "second try");
    assert_int_equal(json_array_size(json_object_get(page, "metrics")), 4); /* the torn line is left out */
    assert_string_equal(json_str(page, "recipe", ""), "name: <b>x</b>\n");
    json_decref(page);
}

static void test_page(void **state)
{
    json_t *page, *again;
    char *html, *data, *end;

    put_run();
    log_set_level(LOG_ERROR);
    page = build();
    log_set_level(LOG_INFO);
    html = html_of(page);
    assert_int_equal(count(html, "</script>"), 2); /* the data's and ours: none is closed by a text */
    assert_null(strstr(html, "alert(1)</script>"));
    assert_null(strstr(html, "<b>x</b>"));
    assert_null(strstr(html, " src="));            /* nothing is loaded from anywhere, no data is markup */
    assert_null(strstr(html, " href="));
    assert_null(strstr(html, "@import"));
    assert_null(strstr(html, "url("));
    assert_null(strstr(html, "innerHTML"));
    data = strstr(html, "id=\"data\">") + strlen("id=\"data\">");
    end = strstr(data, "</script>");
    again = json_loadb(data, (size_t)(end - data), 0, NULL);
    assert_non_null(again);
    assert_true(json_equal(json_object_get(again, "examples"), json_object_get(page, "examples")));
    free(html);
    json_decref(again);
    json_decref(page);
}

static void test_broken_files(void **state)
{
    json_t *page;
    char *notes;

    put_run();
    put("bench/sft/bench.json", "{\"schema\":");
    put("metrics.jsonl", "{\"stage\"\n{}\n");
    page = build();
    notes = json_dumps(json_object_get(page, "notes"), 0);
    assert_int_equal(json_array_size(json_object_get(page, "notes")), 2);
    assert_non_null(strstr(notes, "bench.json"));
    assert_non_null(strstr(notes, "metrics.jsonl"));
    assert_string_equal(json_str(stage(page, 0), "name", ""), "rl");
    free(notes);
    json_decref(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_run), cmocka_unit_test(test_data), cmocka_unit_test(test_page),
        cmocka_unit_test(test_broken_files),
    };

    return cmocka_run_group_tests_name("report", tests, setup, teardown);
}
