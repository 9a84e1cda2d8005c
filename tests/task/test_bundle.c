/* test_bundle.c - several files as one program's text: what a file holds stays inside its comment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "task/bundle.h"

static void add(struct bundle *b, const char *path, const char *text)
{
    struct err e = ERR_INIT;

    assert_int_equal(bundle_add(b, path, text, strlen(text), &e), 0);
}

static void files_follow_the_main_one(void **state)
{
    struct bundle b = {0};
    struct err e = ERR_INIT;
    struct buf out;

    (void)state;
    buf_init(&out, 1 << 16);
    add(&b, "kernel.py", "class ModelNew: pass");
    add(&b, "a.cuh", "one %\r\ntwo\n");
    add(&b, "data.txt", "a\rimport os % b\r\n");
    assert_int_equal(bundle_text(&b, NULL, &out, &e), 0);
    assert_string_equal(out.p, "class ModelNew: pass\n#@file: a.cuh\n#|one %\r\n#|two\n"
                               "#@file: data.txt\n#%a%0Dimport os %25 b%0D\n");
    buf_free(&out);
    bundle_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(files_follow_the_main_one)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
