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

static void test_printed(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 100);
    place_printed("a warning\n\x1e" "0006shape\n\x1e" "0002\x1e" "0noise\x1e" "ffff cut off", 15, &b);
    assert_string_equal(b.p, "shape\n\x1e" "0 cut of");
    place_printed("\x1e" "00", 15, &b);
    place_printed("\x1e" "zzzz", 99, &b);
    assert_int_equal(b.n, 15);
    buf_free(&b);
}

static const char kernels[] =
    "void launch(float *a) { rows<float><<<1, 1>>>(a, 3); }\n"
    "template <typename T> __global__ void rows (const float *__restrict__ x, int n,\n"
    "    std::map<int, T> m, const __half* w , unsigned int *count)\n{\n}\n";

static void test_pointer(void **state)
{
    struct place_parameter p;

    (void)state;
    assert_true(place_pointer(kernels, "rows<float>", 2, 3, &p));
    assert_string_equal(p.name, "w");
    assert_string_equal(p.dtype, "float16");
    assert_int_equal(p.index, 3);
    assert_int_equal(p.bytes, 2);
    assert_true(place_pointer(kernels, "rows", 1, 3, &p));
    assert_string_equal(p.name, "x");
    assert_true(place_pointer(kernels, "rows", 3, 3, &p)); /* of a type without a dtype of its own */
    assert_null(p.dtype);
    assert_false(place_pointer(kernels, "rows", 3, 2, &p)); /* a null pointer: which one is not known */
    assert_false(place_pointer(kernels, "row", 1, 1, &p));
    assert_false(place_pointer(NULL, "rows", 1, 3, &p));
}

static void test_memory_words(void **state)
{
    json_t *m = json_pack("{s:s,s:s,s:[i],s:s,s:i,s:i}", "tensor", "y", "role", "argument 3 of k", "shape", 16, "dtype",
                          "float32", "bytes", 64, "at", 8), *bare = json_pack("{s:s,s:s,s:i}", "tensor", "y", "role",
                          "argument 3 of k", "bytes", 64);
    struct buf b;

    (void)state;
    buf_init(&b, 1000);
    memory_words("write at byte 8 of 'device memory' (64 bytes) conflicts", m, &b);
    assert_string_equal(b.p, "write at byte 8 of 'y' (argument 3 of k, 16 float32), element 2 of 16, conflicts");
    buf_clear(&b);
    memory_words("right behind the end of 'device memory' (64 bytes)", bare, &b);
    assert_string_equal(b.p, "right behind the end of 'y' (argument 3 of k, 64 bytes)");
    buf_free(&b);
    json_decref(m);
    json_decref(bare);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_python), cmocka_unit_test(test_line),
                                       cmocka_unit_test(test_printed), cmocka_unit_test(test_pointer),
                                       cmocka_unit_test(test_memory_words)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
