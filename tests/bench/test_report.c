/* test_report.c - suites in natural order; ticks; a report that loads nothing, escapes everything, and survives what is
 * missing or broken in a run folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "bench/report.h"
#include "bench/report_parts.h"
#include "bench/suite.h"
#include "bench/svg.h"

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

static void test_natural(void **state)
{
    static const char *const order[] = {"1_a", "2_a", "2_b", "10_a", "a1", "a01", "a2", "a10", "b"};

    for (int i = 0; i < 9; i++)
        for (int j = 0; j < 9; j++) {
            int c = natural_compare(order[i], order[j]);
            bool tie = (i == 4 && j == 5) || (i == 5 && j == 4); /* equal numbers: any fixed order */
            if (!tie)
                assert_true(i < j ? c < 0 : i > j ? c > 0 : c == 0);
            assert_true((c < 0) == (natural_compare(order[j], order[i]) > 0));
        }
}

#define TASK "class Model:\n    pass\ndef get_inputs():\n    return []\ndef get_init_inputs():\n    return []\n"

static void test_suite(void **state)
{
    struct err e = ERR_INIT;
    struct suite s, again;
    char *path = path_join(dir, "tasks");

    put("tasks/chain_10.py", TASK);
    put("tasks/chain_9.py", TASK);
    put("tasks/19_ReLU.py", TASK "#");
    put("tasks/notes.txt", "x");
    assert_int_equal(suite_load(path, 0, &s, &e), 0);
    assert_int_equal(s.n, 3);
    assert_string_equal(s.tasks[0].name, "19_ReLU");
    assert_string_equal(s.tasks[1].name, "chain_9");
    assert_string_equal(s.families[0], "all");
    assert_string_equal(s.families[2], "chain");
    assert_int_equal(suite_find(&s, "chain_10"), 2);
    assert_int_equal(suite_find(&s, "chain"), -1);
    assert_int_equal(suite_load(path, 2, &again, &e), 0);
    assert_int_equal(again.n, 2);
    assert_string_not_equal(again.sha256, s.sha256);
    suite_free(&again);
    suite_free(&s);
    put("broken/x.py", "print(1)\n");
    free(path);
    path = path_join(dir, "broken");
    assert_int_equal(suite_load(path, 0, &s, &e), -1);
    assert_int_equal(suite_load("/nonexistent", 0, &s, &e), -1);
    free(path);
}

static void test_ticks(void **state)
{
    static const double cases[][2] = {{0, 1}, {0.13, 0.87}, {-0.4, 1.3}, {0, 3e-6}, {190, 204}, {5, 5}, {0, 0},
                                      {-7, -7}, {0, 1e9}};
    double t[16];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int n = svg_ticks(cases[i][0], cases[i][1], 5, t);
        assert_true(n >= 2 && n <= 7);
        assert_true(t[0] <= cases[i][0] + 1e-12 && t[n - 1] >= cases[i][1] - 1e-12);
        for (int k = 2; k < n; k++)
            assert_true(fabs((t[k] - t[k - 1]) - (t[1] - t[0])) < 1e-9 * fabs(t[n - 1] - t[0]) + 1e-15);
    }
}

static char *build(void)
{
    struct err e = ERR_INIT;
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    if (report_build(dir, &b, &e) < 0)
        fail_msg("%s", e.msg);
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
    struct buf b;
    char *html = build();

    assert_non_null(strstr(html, "No benchmark has finished yet"));
    free(html);
    buf_init(&b, 1 << 20);
    assert_int_equal(report_build("/nonexistent", &b, &e), -1);
    buf_free(&b);
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

static void test_page(void **state)
{
    char *html;

    put_run();
    log_set_level(LOG_ERROR);
    html = build();
    log_set_level(LOG_INFO);
    assert_int_equal(count(html, "<script>"), 1); /* ours; those of the data are escaped */
    assert_null(strstr(html, "alert(1)</script>"));
    assert_null(strstr(html, "<b>x</b>"));
    assert_null(strstr(html, "src="));            /* nothing is loaded from anywhere */
    assert_null(strstr(html, "href="));
    assert_null(strstr(html, "@import"));
    assert_null(strstr(html, "url("));
    assert_true(strstr(html, ">sft<") < strstr(html, ">rl<"));
    assert_non_null(strstr(html, "<b>Reward</b>"));
    assert_non_null(strstr(html, "<b>Masked share</b>"));
    assert_non_null(strstr(html, "repaired in turn 2"));
    assert_non_null(strstr(html, "first try"));
    assert_null(strstr(html, "faster than eager")); /* not measured on sim */
    assert_null(strstr(html, ">nan"));
    assert_null(strstr(html, "inf%"));
    free(html);
}

static void test_broken_files(void **state)
{
    char *html;

    put_run();
    put("bench/sft/bench.json", "{\"schema\":");
    put("metrics.jsonl", "{\"stage\"\n{}\n");
    html = build();
    assert_non_null(strstr(html, "Left out"));
    assert_non_null(strstr(html, "metrics.jsonl"));
    assert_non_null(strstr(html, ">rl<"));
    free(html);
}

static void test_error_bar(void **state)
{
    json_t *b = json_loads("{\"per_task\":[{\"n\":8,\"passed\":8},{\"n\":8,\"passed\":0},{\"n\":8,\"passed\":4},{"
                           "\"n\":0,\"passed\":0}]}", 0, NULL);

    /* shares 1, 0, 0.5: standard deviation 0.5, standard error 0.5 / sqrt(3) */
    assert_true(fabs(report_avg_error(b) - 1.96 * 0.5 / sqrt(3)) < 1e-12);
    json_decref(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_natural),   cmocka_unit_test(test_suite), cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_empty_run), cmocka_unit_test(test_page),  cmocka_unit_test(test_broken_files),
        cmocka_unit_test(test_error_bar),
    };

    return cmocka_run_group_tests_name("report", tests, setup, teardown);
}
