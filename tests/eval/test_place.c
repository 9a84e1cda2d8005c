/* test_place.c - places in what a process said before its end: tracebacks of Python, asserts of kernels, and neither. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "eval/place.h"

static void test_python(void **state)
{
    static const char crash[] =
        "chatter\nFatal Python error: Segmentation fault\n\nCurrent thread 0x01 (most recent call first):\n"
        "  File \"/x/native/module.py\", line 258 in call\n  File \"candidate.py\", line 24 in forward\n"
        "  File \"/x/runner/candidate.py\", line 193 in run\n";
    static const char late[] =
        "Timeout (0:00:03)!\nThread 0x02 (most recent call first):\n  File \"candidate.py\", line 7 in helper\n"
        "Thread 0x01 (most recent call first):\n  File \"candidate.py\", line 9 in forward\n";
    static const char waiting[] =
        "Timeout (0:00:03)!\nThread 0x01 (most recent call first):\n  File \"/x/cuda/core.py\", line 150 in finish\n"
        "  File \"/x/runner/candidate.py\", line 196 in run\n";
    bool waits = true;

    (void)state;
    assert_int_equal(place_python(crash, &waits), 24);
    assert_false(waits);
    assert_int_equal(place_python(late, &waits), 9);
    assert_int_equal(place_python(waiting, &waits), 0);
    assert_true(waits);
    assert_int_equal(place_python("File \"candidate.py\", line 3", NULL), 0);
    assert_int_equal(place_python("", NULL), 0);
}

static void test_assert(void **state)
{
    struct place_assert a = {.line = -1};

    (void)state;
    assert_true(place_assert("x\ncuda_source:7: softmax(const float *, int): block: [3,0,0], thread: [0,0,0] Assertion "
                             "`n % 64 == 0` failed.\nmore: 3\n", &a));
    assert_string_equal(a.file, "cuda_source");
    assert_int_equal(a.line, 7);
    assert_string_equal(a.what, "n % 64 == 0");
    assert_string_equal(a.kernel, "softmax(const float *, int)");
    assert_true(place_assert("/tmp/a.cu:12: k: block: [0,0,0], thread: [0,0,0] Assertion `0' failed.", &a));
    assert_int_equal(a.line, 12);
    assert_true(place_assert("a.cu:12: void k(int): block: [0,0,0], thread: [0,0,0] Assertion `0' failed.", &a));
    assert_string_equal(a.kernel, "k(int)");
    assert_false(place_assert("Assertion `n' failed.", &a));
    assert_false(place_assert("a.cu:12: no such thing", &a));
}

static void test_kernels(void **state)
{
    char text[64];

    (void)state;
    place_kernels("launched in this call: a(int)\nx\nlaunched in this call: b(int), c()\nmore\n", text, sizeof text);
    assert_string_equal(text, " (b(int), c())");
    place_kernels("nothing", text, sizeof text);
    assert_string_equal(text, "");
}

static void test_findings(void **state)
{
    const char *p;
    size_t n = 0;

    (void)state;
    p = place_findings("musacoder-findings: [1]\nfree(): invalid pointer\nmusacoder-findings: [2,3]\nAborted\n", &n);
    assert_non_null(p);
    assert_int_equal(5, n);
    assert_memory_equal("[2,3]", p, n);
    assert_null(place_findings("Aborted", &n));
}

static void test_line(void **state)
{
    char text[16];

    (void)state;
    assert_true(place_line("one\n   two\r\nthree", 2, text, sizeof text));
    assert_string_equal(text, "two");
    assert_true(place_line("one\ntwo\nthree", 3, text, sizeof text));
    assert_false(place_line("one\n", 4, text, sizeof text));
    assert_false(place_line("one\n", 0, text, sizeof text));
    assert_false(place_line(NULL, 1, text, sizeof text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_python), cmocka_unit_test(test_assert), cmocka_unit_test(test_kernels),
                                       cmocka_unit_test(test_line), cmocka_unit_test(test_findings)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
