/* test_watch.c - what 'watch' makes of metrics: numbers of the newest stage, its course, a page that needs nothing
 * else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "report/watch.h"

static char *run;

static int make(void **state)
{
    struct err e = ERR_INIT;

    return (run = dir_temp("watch", &e)) ? 0 : -1;
}

static int unmake(void **state)
{
    dir_remove(run, NULL);
    free(run);
    return 0;
}

static void write_metrics(const char *text)
{
    struct err e = ERR_INIT;
    char *path = path_join(run, "metrics.jsonl");

    assert_int_equal(file_write(path, text, strlen(text), &e), 0);
    free(path);
}

static json_t *read_metrics(void)
{
    struct err e = ERR_INIT;
    json_t *lines;
    double idle;

    if (watch_read(run, &lines, &idle, &e) < 0)
        fail_msg("%s", e.msg);
    assert_true(idle >= 0 && idle < 1000);
    return lines;
}

/* 12 steps of rl behind two of sft; the last line is still being written. */
static void write_two_stages(void)
{
    struct buf b;

    buf_init(&b, 1 << 20);
    for (int i = 1; i <= 2; i++)
        buf_addf(&b, "{\"stage\":\"sft\",\"step\":%d,\"time_s\":1.0,\"loss\":%d}\n", i, 900 + i);
    for (int i = 1; i <= 12; i++)
        buf_addf(&b,
                 "{\"stage\":\"rl\",\"step\":%d,\"time_s\":%d,\"reward\":%d,\"pass_rate\":0.25,\"entropy\":\"nan\"}\n",
                 i, 100 * i, i);
    buf_adds(&b, "{\"stage\":\"rl\",\"step\":13,\"rewa");
    write_metrics(b.p);
    buf_free(&b);
}

static void terminal(void **state)
{
    struct buf b;

    write_two_stages();
    json_t *lines = read_metrics();
    buf_init(&b, 1 << 20);
    watch_text(&b, "runs/a", lines, 5, 100);
    assert_non_null(strstr(b.p, "runs/a: rl, step 12, 20 min, last step 5 s ago\n"));
    // the mean of 3 .. 12, and a course that rises from the lowest to the highest block
    assert_non_null(strstr(b.p, "reward                           12        7.5  ▁▁▂▃▃▄▅▆▆▇██\n"));
    assert_non_null(strstr(b.p, "pass rate                    25.0 %     25.0 %  ▁▁▁▁▁▁▁▁▁▁▁▁\n"));
    assert_null(strstr(b.p, "90"));      // of the stage before
    assert_null(strstr(b.p, "entropy")); // not a number: no line
    buf_free(&b);
    json_decref(lines);
}

static void page(void **state)
{
    write_two_stages();
    json_t *lines = read_metrics(), *data = watch_data("/runs/<b>", lines, 5, 7);
    json_t *tile = json_array_get(json_object_get(data, "tiles"), 0);

    assert_int_equal(json_i64(data, "reload", 0), 7);
    assert_string_equal(json_str(data, "title", ""), "<b>");
    assert_string_equal(json_str(tile, "label", ""), "reward");
    assert_true(json_f64(tile, "last", 0) == 12 && json_f64(tile, "mean", 0) == 7.5);
    assert_true(json_equal(json_object_get(data, "metrics"), lines));
    json_decref(data);
    data = watch_data("/runs/x", lines, 5, 0); /* made once: nothing to load again */
    assert_int_equal(json_i64(data, "reload", 1), 0);
    assert_null(strstr(json_str(data, "from", "anew"), "anew"));
    json_decref(data);
    json_decref(lines);
}

static void nothing_yet(void **state)
{
    struct err e = ERR_INIT;
    json_t *lines;
    double idle;
    struct buf b;

    write_metrics("");
    lines = read_metrics();
    buf_init(&b, 1 << 20);
    watch_text(&b, "runs/a", lines, 0, 80);
    assert_non_null(strstr(b.p, "no step is finished yet"));
    json_decref(watch_data("runs/a", lines, 0, 5));
    buf_free(&b);
    json_decref(lines);
    assert_int_equal(watch_read("/nowhere", &lines, &idle, &e), -1);
    assert_non_null(strstr(e.msg, "metrics.jsonl"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(terminal), cmocka_unit_test(page),
                                       cmocka_unit_test(nothing_yet)};

    return cmocka_run_group_tests(tests, make, unmake);
}
