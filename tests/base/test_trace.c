/* test_trace.c - spans become lines of a JSON array that a viewer reads, whatever their names; short ones do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/log.h"
#include "base/trace.h"

static json_t *read_trace(const char *path)
{
    char text[8192];
    FILE *f = fopen(path, "r");
    size_t n = fread(text, 1, sizeof text - 2, f);
    json_t *all;

    fclose(f);
    assert_true(n > 3 && text[0] == '[' && !memcmp(text + n - 2, ",\n", 2));
    memcpy(text + n - 2, "]", 2); /* what viewers do by themselves */
    all = json_loads(text, 0, NULL);
    assert_non_null(all);
    return all;
}

static void test_spans(void **state)
{
    char path[] = "/tmp/musacoder-trace-XXXXXX", name[400];
    double t0 = now_s();
    json_t *all, *first;

    (void)state;
    close(mkstemp(path));
    setenv("MUSACODER_TRACE", path, 1);
    assert_true(trace_on());
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    trace_span(now_s(), "wait", "too short to say");
    usleep(20000);
    trace_span(t0, "wait", "a \"name\"\n\\ with %s", "all kinds of \x01 bytes \xff");
    trace_span(t0, "stage", "%s", name);
    all = read_trace(path);
    assert_int_equal(json_array_size(all), 2);
    first = json_array_get(all, 0);
    assert_string_equal(json_string_value(json_object_get(first, "name")), "a _name___ with all kinds of _ bytes _");
    assert_string_equal(json_string_value(json_object_get(first, "ph")), "X");
    assert_true(json_number_value(json_object_get(first, "dur")) >= 20000);
    assert_true(llabs((long long)(json_number_value(json_object_get(first, "ts")) - t0 * 1e6)) <= 1);
    assert_int_equal(json_integer_value(json_object_get(first, "pid")), getpid());
    json_decref(all);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_spans)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
