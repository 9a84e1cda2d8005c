/* test_musa.c - cards of Moore Threads through a recorded driver,
    the compiler through a recorded one; the profile table. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/file.h"
#include "device/musa_cards.h"

static void test_no_driver(void **state)
{
    struct err e = ERR_INIT;
    struct musa_card *cards;
    int n;

    (void)state;
    setenv("MUSACODER_LIBMUSA", "/nonexistent/libmusa.so", 1);
    assert_int_equal(-1, musa_cards(&cards, &n, &e));
    assert_int_equal(ERR_ENV, e.kind);
    assert_non_null(strstr(e.msg, "--profile s4000"));
}

static void test_card(void **state)
{
    struct err e = ERR_INIT;
    struct musa_card *cards;
    const struct data_sheet *p;
    struct buf b;
    char *lib = path_lib("libfakemusa.so");
    int n = 0;

    (void)state;
    assert_non_null(lib);
    setenv("MUSACODER_LIBMUSA", lib, 1);
    if (musa_cards(&cards, &n, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(1, n);
    assert_string_equal("MTT S4000", cards[0].name);
    assert_int_equal(220, cards[0].figures[FACT_ARCH]);
    assert_int_equal(128, cards[0].figures[FACT_WARP_HOST]);
    assert_true(cards[0].figures[FACT_COOPERATIVE] == DATA_SHEET_UNKNOWN);
    p = musa_card_profile(&cards[0]);
    assert_ptr_equal(p, data_sheet_find("s4000"));
    buf_init(&b, 4096);
    musa_card_differences(&cards[0], p, &b);
    assert_non_null(strstr(b.p, "multiprocessors: 55 here, 56 in the profile\n"));
    assert_null(strstr(b.p, "l2_bytes"));
    assert_null(strstr(b.p, "memory_bytes"));
    buf_free(&b);
    free(cards);
    free(lib);
}

/* $MUSACODER_MCC comes first. */
static void test_compiler(void **state)
{
    static const char script[] = "#!/bin/sh\n";
    struct err e = ERR_INIT;
    char *folder = dir_temp("mcc", &e), *path = path_join(folder, "mcc"), *mcc;

    (void)state;
    assert_int_equal(0, file_write(path, script, sizeof script - 1, &e));
    assert_int_equal(0, chmod(path, 0755));
    setenv("MUSACODER_MCC", path, 1);
    mcc = musa_compiler(&e);
    assert_string_equal(path, mcc);
    free(mcc);
    free(path);
    dir_remove(folder, NULL);
    free(folder);
}

/* Every known figure says where it is from; what must not be zero is not. */
static void test_profiles(void **state)
{
    const struct data_sheet *p;
    size_t n = 0;

    (void)state;
    for (; (p = data_sheet_at(n)); n++)
        for (int f = 0; f < N_DATA_SHEET_FACTS; f++) {
            const struct data_sheet_figure *v = &p->figures[f];
            if (v->value == DATA_SHEET_UNKNOWN) {
                assert_null(v->source);
                continue;
            }
            assert_non_null(strchr("VDCI", v->evidence));
            assert_true(v->source && *v->source);
            assert_true(v->value > 0 || f == FACT_COOPERATIVE || f == FACT_BF16 || f == FACT_FP8 ||
                        f == FACT_DIVISION_ULP);
        }
    assert_true(n >= 8);
    assert_int_equal(128, data_sheet_get(data_sheet_find("s4000"), FACT_WARP_HOST, 0));
    assert_int_equal(32, data_sheet_get(data_sheet_find("s4000"), FACT_WARP_SHUFFLE, 0));
    assert_int_equal(7, data_sheet_get(data_sheet_find("s80"), FACT_MPS, 7));
    assert_null(data_sheet_find("s9000"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_driver),
        cmocka_unit_test(test_card),
        cmocka_unit_test(test_compiler),
        cmocka_unit_test(test_profiles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
