/* test_place.c - places in what a process said before its end: tracebacks of Python, and none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "eval/verdict/place.h"

static void test_python(void **state)
{
    static const char crash[] =
        "chatter\nFatal Python error: Segmentation fault\n\nCurrent thread 0x01 (most recent call first):\n"
        "  File \"/x/native/module.py\", line 258 in call\n  File \"candidate.py\", line 24 in forward\n"
        "  File \"/x/runner/front_role.py\", line 147 in call\n";
    static const char late[] =
        "Timeout (0:00:03)!\nThread 0x02 (most recent call first):\n  File \"candidate.py\", line 7 in helper\n"
        "Thread 0x01 (most recent call first):\n  File \"candidate.py\", line 9 in forward\n";

    (void)state;
    assert_int_equal(place_python(crash), 24);
    assert_int_equal(place_python(late), 9);
    assert_int_equal(place_python("File \"candidate.py\", line 3"), 0);
    assert_int_equal(place_python(""), 0);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_python), cmocka_unit_test(test_line)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
