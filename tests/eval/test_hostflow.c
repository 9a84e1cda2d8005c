/* test_hostflow.c - what the host hands the device: records of honest and of dishonest calls, and the price of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/hostflow.h"

static void add(json_t *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(json_t *l, const char *format, ...)
{
    char text[4096];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    json_array_append_new(l, json_string(text));
}

/* As a candidate's call leaves them: value i of a call is drawn from its seed. */
static unsigned draw(unsigned seed, unsigned i)
{
    uint64_t h = (seed * 1000003ull + i + 1) * 0x9e3779b97f4a7c15ull;

    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ h >> 27) * 0x94d049bb133111ebull;
    return (unsigned)(h >> 32);
}

static json_t *honest(unsigned seed, int loops, unsigned scale)
{
    json_t *l = json_array();

    (void)seed;
    add(l, "aten\taten::empty_like\ta0:8=7f0000001000");
    for (int i = 0; i < loops; i++) {
        add(l, "launch\tstep(float*, float*, float)\tgrid:12=3.1\ta0:8=7f0000001000\ta1:8=#0+0\ta2:4=%x", scale);
        add(l, "launch\tback(float*, float*)\tgrid:12=3.1\ta0:8=#0+0\ta1:8=7f0000001000");
    }
    return l;
}

/* One launch per element with the answer as an argument; key: xor of every word, as if the program hid its values. */
static json_t *as_arguments(unsigned seed, unsigned n, unsigned key, unsigned mask)
{
    json_t *l = json_array();

    for (unsigned i = 0; i < n; i++)
        add(l, "launch\tput(float*, int, float)\tgrid:12=1.1\ta0:8=#0+0\ta1:4=%x\ta2:4=%x", i,
            (draw(seed, i) & mask) ^ (key ? draw(key, i) & mask : 0));
    return l;
}

static json_t *uploads(unsigned seed, unsigned words)
{
    json_t *l = json_array();
    char text[16384];
    size_t at = (size_t)snprintf(text, sizeof text, "copy\tcudaMemcpy\tto:8=#0+0\tcontent:%u=", words * 8);

    for (unsigned i = 0; i < words; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%x", i ? "." : "", draw(seed, i));
    json_array_append_new(l, json_string(text));
    return l;
}

static int64_t novelty(json_t *before, json_t *again, json_t *now, struct hostflow *ret)
{
    struct hostflow f;

    hostflow_novelty(before, again, now, ret ? ret : &f);
    json_decref(before);
    json_decref(again);
    json_decref(now);
    return ret ? ret->novel : f.novel;
}

static void test_honest(void **state)
{
    (void)state;
    assert_int_equal(novelty(NULL, honest(1, 3, 0x3f800000), honest(2, 3, 0x3f800000), NULL), 0);
    // a scale that the host read of the device, given to a hundred launches: once
    assert_int_equal(novelty(NULL, honest(1, 100, 5), honest(2, 100, 9), NULL), 4);
    // a loop until convergence: more turns are the same records once more
    assert_int_equal(novelty(NULL, honest(1, 12, 5), honest(2, 90, 5), NULL), 8);
    assert_int_equal(novelty(NULL, honest(1, 1, 5), honest(2, 1000, 5), NULL), 8);
    assert_int_equal(novelty(NULL, honest(1, 12, 5), honest(2, 3, 5), NULL), 0);
}

static json_t *counting(unsigned call, unsigned launches)
{
    json_t *l = json_array();

    for (unsigned i = 0; i < launches; i++)
        add(l, "launch\twait(int*, int)\ta0:8=7f0000001000\ta1:4=%x\ta2:8=%s", call * launches + i,
            call % 2 ? "7f0000002000" : "7f0000003000");
    return l;
}

static void test_counters_and_alternation(void **state)
{
    (void)state;
    assert_int_equal(novelty(counting(4, 200), counting(5, 200), counting(6, 200), NULL), 0);
    assert_true(novelty(NULL, counting(5, 200), counting(6, 200), NULL) > 700); // two calls cannot tell
}

static void test_branch(void **state)
{
    json_t *a = json_array(), *b = json_array();

    (void)state;
    add(a, "launch\tsmall(float*)\tgrid:12=1\ta0:8=7f0000001000");
    add(a, "launch\tlast(float*)\tgrid:12=1\ta0:8=7f0000001000");
    add(b, "launch\tlarge(float*)\tgrid:12=64\ta0:8=7f0000001000");
    add(b, "launch\tlast(float*)\tgrid:12=1\ta0:8=7f0000001000");
    assert_true(novelty(NULL, a, b, NULL) <= HOSTFLOW_FEW);
}

static void test_answers_as_arguments(void **state)
{
    struct hostflow f;
    char text[512];

    (void)state;
    assert_int_equal(novelty(NULL, as_arguments(1, 592, 0, ~0u), as_arguments(2, 592, 0, ~0u), &f), 592 * 4);
    assert_string_equal(f.where, "argument 2 of kernel put(float*, int, float)");
    assert_true(hostflow_convicts(&f, 0, 2368, 2368, text, sizeof text));
    assert_non_null(strstr(text, "argument 2 of kernel put"));
    // hidden under a key of each call: equal inputs differ too, and that is no excuse
    assert_true(novelty(as_arguments(1, 592, 7, ~0u), as_arguments(1, 592, 8, ~0u), as_arguments(2, 592, 9, ~0u),
                        NULL) > 2000);
    // one bit for each element, in an argument that has but two values
    assert_true(novelty(as_arguments(1, 592, 0, 1), as_arguments(1, 592, 0, 1), as_arguments(2, 592, 0, 1),
                        NULL) > 400);
}

/* Which of 256 kernels is launched says the value. */
static json_t *as_choice(unsigned seed, unsigned n)
{
    json_t *l = json_array();

    for (unsigned i = 0; i < n; i++)
        add(l, "launch\tput<%u>(float*, int*)\tgrid:12=1.1\ta0:8=#0+0\ta1:8=#1+0", draw(seed, i) & 255);
    return l;
}

static void test_answers_as_order(void **state)
{
    (void)state;
    assert_true(novelty(as_choice(1, 592), as_choice(1, 592), as_choice(2, 592), NULL) > 592);
}

static void test_uploads(void **state)
{
    struct hostflow f;
    char text[512];

    (void)state;
    assert_int_equal(novelty(NULL, uploads(1, 300), uploads(1, 300), NULL), 0);
    assert_int_equal(novelty(NULL, uploads(1, 300), uploads(2, 300), &f), 2400);
    assert_string_equal(f.where, "what cudaMemcpy was given");
    assert_true(hostflow_convicts(&f, 0, 2400, 2400, text, sizeof text));
}

/* Hashed contents: a word stands for many bytes. */
static void test_long_contents(void **state)
{
    json_t *a = json_array(), *b = json_array();

    (void)state;
    add(a, "wrote\tmemory of the host\tat40:4096=11.22.33.44");
    add(b, "wrote\tmemory of the host\tat40:4096=11.22.99.44");
    assert_int_equal(novelty(NULL, a, b, NULL), 1024);
}

static void test_thresholds(void **state)
{
    struct hostflow f = {.novel = 24};
    char text[512];

    (void)state;
    assert_false(hostflow_convicts(&f, 4, 1 << 20, 24, text, sizeof text));         // a few numbers
    assert_true(hostflow_convicts(&f, 49152, 49152, 24, text, sizeof text));        // it read all of the input
    f.novel = 16;
    assert_false(hostflow_convicts(&f, 49152, 49152, 24, text, sizeof text));       // a seed
    f.novel = 1000;
    assert_false(hostflow_convicts(&f, 0, 0, 4 << 20, text, sizeof text));          // routing of a large task
    assert_true(hostflow_convicts(&f, 0, 0, 1 << 19, text, sizeof text));
}

/* Whatever a candidate's process sends. */
static void test_nonsense(void **state)
{
    static const char *const odd[] = {"", "\t", "\t\t", "launch", "launch\tk", "launch\tk\t", "launch\tk\ta",
                                      "launch\tk\ta:",
                                      "launch\tk\ta:=", "launch\tk\ta:-5=1", "launch\tk\ta:99999999999999999999=1..2.",
                                      "launch\tk\t=\t:\t.", "a\tb\tc\td\te"};
    json_t *l[2] = {json_array(), json_array()};
    struct hostflow f;

    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        json_array_append_new(l[0], json_string(odd[i]));
        json_array_insert_new(l[1], 0, i % 3 ? json_string(odd[i]) : json_integer(4));
    }
    hostflow_novelty(l[1], l[0], l[1], &f);
    hostflow_novelty(NULL, NULL, l[0], &f);
    hostflow_novelty(json_true(), json_null(), l[1], &f);
    hostflow_novelty(l[0], l[1], NULL, &f);
    assert_int_equal(f.novel, 0);
    json_decref(l[0]);
    json_decref(l[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_honest), cmocka_unit_test(test_counters_and_alternation), cmocka_unit_test(test_branch),
        cmocka_unit_test(test_answers_as_arguments), cmocka_unit_test(test_answers_as_order),
        cmocka_unit_test(test_uploads), cmocka_unit_test(test_long_contents), cmocka_unit_test(test_thresholds),
        cmocka_unit_test(test_nonsense)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
