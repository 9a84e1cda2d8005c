/* test_opt_store.c - rows that are bound to fields: each type, what is unset, and a number that its field cannot
 * hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/opt.h"

struct fields {
    bool on;
    int small;
    int64_t large;
    uint64_t seed;
    struct {
        double share;
    } inner;
    const char *text, *choice, *unset;
};

static const struct opt rows[] = {
    {"t", "on", OPT_BOOL, "true", "switch", INTO(struct fields, on)},
    {"t", "small", OPT_INT, "3", "number", INTO(struct fields, small)},
    {"t", "large", OPT_INT, "5000000000", "number", INTO(struct fields, large)},
    {"t", "seed", OPT_INT, "-1", "number", INTO(struct fields, seed)},
    {"t", "share", OPT_REAL, "0.5", "0 to 1: number", INTO(struct fields, inner.share)},
    {"t", "text", OPT_STR, "a", "text", INTO(struct fields, text)},
    {"t", "choice", OPT_CHOICE, "x", "x|y: choice", INTO(struct fields, choice)},
    {"t", "unset", OPT_STR, NULL, "text", INTO(struct fields, unset)},
    {"t", "unbound", OPT_INT, "7", "number"},
    {0},
};

static int store(int argc, char **argv, struct fields *f, struct err *e)
{
    struct opts o;
    int rc;

    if (opts_parse(rows, argc, argv, NULL, &o, e) < 0)
        return -1;
    rc = opts_store(&o, f, e);
    if (rc == 0 && f->text) // borrowed: not read after the options go
        assert_int_equal(strlen(f->text), argc ? 4 : 1);
    f->text = f->choice = NULL;
    opts_free(&o);
    return rc;
}

static void defaults_and_flags(void **state)
{
    char *argv[] = {"--no-on", "--small=-4", "--large", "1", "--share=0.25", "--text", "here", "--choice=y"};
    struct fields f = {.unset = "kept"};
    struct err e = ERR_INIT;

    assert_int_equal(store(0, NULL, &f, &e), 0);
    assert_true(f.on && f.small == 3 && f.large == 5000000000 && f.seed == UINT64_MAX && f.inner.share == 0.5);
    assert_string_equal(f.unset, "kept");
    assert_int_equal(store(8, argv, &f, &e), 0);
    assert_true(!f.on && f.small == -4 && f.large == 1 && f.inner.share == 0.25);
}

static void too_large_for_the_field(void **state)
{
    char *argv[] = {"--small=5000000000"};
    struct fields f = {0};
    struct err e = ERR_INIT;

    assert_int_equal(store(1, argv, &f, &e), -1);
    assert_int_equal(e.kind, ERR_INPUT);
    assert_string_equal(e.msg, "'small' is 5000000000; 2147483647 is the largest that is possible");
    assert_int_equal(f.small, 0);
}

static void a_row_of_another_type(void **state)
{
    static const struct opt wrong[] = {{"t", "share", OPT_REAL, "0.5", "number", INTO(struct fields, large)}, {0}};
    struct fields f = {0};
    struct err e = ERR_INIT;
    struct opts o;

    assert_int_equal(opts_parse(wrong, 0, NULL, NULL, &o, &e), 0);
    assert_int_equal(opts_store(&o, &f, &e), -1);
    assert_int_equal(e.kind, ERR_BUG);
    opts_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(defaults_and_flags), cmocka_unit_test(too_large_for_the_field),
                                       cmocka_unit_test(a_row_of_another_type)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
