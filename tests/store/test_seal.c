/* test_seal.c - kept bytes are believed only as they were written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/log.h"
#include "store/seal.h"

static char *dir;

static int setup(void **state)
{
    struct err e = ERR_INIT;

    (void)state;
    log_set_level(LOG_ERROR);
    return (dir = dir_temp("seal", &e)) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    dir_remove(dir, NULL);
    free(dir);
    return 0;
}

static bool reads(const char *path, const char *want)
{
    struct buf b;
    bool ok;

    buf_init(&b, 1 << 20);
    ok = seal_read(path, &b) && !strcmp(b.p + SEAL_HEAD, want);
    buf_free(&b);
    return ok;
}

static void write_bytes(const char *path, const char *p, size_t n)
{
    struct err e = ERR_INIT;

    assert_int_equal(file_write(path, p, n, &e), 0);
}

/* Each byte changed, each length cut: dropped, and the next call finds none. */
static void damaged_files_are_dropped(void **state)
{
    static const struct seal_part parts[] = {{"one ", 4}, {"two", 3}};
    char *path = path_join(dir, "x");
    struct err e = ERR_INIT;
    struct buf whole;

    (void)state;
    assert_int_equal(seal_write(path, parts, 2, &e), 0);
    assert_true(reads(path, "one two"));
    buf_init(&whole, 1 << 20);
    assert_int_equal(file_read(path, &whole, &e), 0);
    for (size_t i = 0; i < whole.n; i++) {
        whole.p[i] ^= 1;
        write_bytes(path, whole.p, whole.n);
        assert_false(reads(path, "one two"));
        assert_false(file_exists(path));
        whole.p[i] ^= 1;
        write_bytes(path, whole.p, i);
        assert_false(reads(path, "one two"));
        assert_false(file_exists(path));
    }
    buf_free(&whole);
    free(path);
}

/* Whole, and another's: its name is not the one that it was written for. The folder of a cache may have another. */
static void swapped_files_are_dropped(void **state)
{
    static const struct seal_part one = {"one", 3};
    char *moved = path_join(dir, "moved"), *x = path_join(dir, "ab/x.ref"), *y = path_join(dir, "ab/y.ref"),
         *z = path_join(dir, "cd/x.ref"), *w = path_join(dir, "moved/ab/x.ref"), *to[] = {y, z};
    char *folders[] = {path_join(dir, "ab"), path_join(dir, "cd"), moved, path_join(dir, "moved/ab")};
    struct err e = ERR_INIT;
    struct buf whole;

    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(dir_make(folders[i], &e), 0);
    assert_int_equal(seal_write(x, &one, 1, &e), 0);
    buf_init(&whole, 1 << 20);
    assert_int_equal(file_read(x, &whole, &e), 0);
    for (size_t i = 0; i < 2; i++) {
        write_bytes(to[i], whole.p, whole.n);
        assert_false(reads(to[i], "one"));
        assert_false(file_exists(to[i]));
    }
    write_bytes(w, whole.p, whole.n);
    assert_true(reads(w, "one"));
    assert_true(reads(x, "one"));
    buf_free(&whole);
    free(x), free(y), free(z), free(w);
    for (size_t i = 0; i < 4; i++)
        free(folders[i]);
}

static void swapped_folders_are_seen(void **state)
{
    static const char *const names[] = {"a", NULL};
    char *a = path_join(dir, "KEY.work"), *b = path_join(dir, "KEY"), *c = path_join(dir, "OTHER"),
         *file = path_join(a, "a");
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(dir_make(a, &e), 0);
    write_bytes(file, "1", 1);
    assert_int_equal(seal_folder(a, b, names, &e), 0);
    assert_int_equal(rename(a, b), 0);
    assert_true(seal_folder_holds(b));
    assert_int_equal(rename(b, c), 0);
    assert_false(seal_folder_holds(c));
    free(a), free(b), free(c), free(file);
}

static void damaged_folders_are_seen(void **state)
{
    static const char *const names[] = {"a", "b", "absent", NULL};
    char *a = path_join(dir, "a"), *b = path_join(dir, "b"), *sums = path_join(dir, "SHA256SUMS");
    struct err e = ERR_INIT;

    (void)state;
    write_bytes(a, "1", 1), write_bytes(b, "22", 2);
    assert_false(seal_folder_holds(dir));
    assert_int_equal(seal_folder(dir, dir, names, &e), 0);
    assert_true(seal_folder_holds(dir));
    write_bytes(b, "23", 2);
    assert_false(seal_folder_holds(dir));
    write_bytes(b, "22", 2);
    assert_true(seal_folder_holds(dir));
    unlink(a);
    assert_false(seal_folder_holds(dir));
    write_bytes(sums, "", 0);
    assert_false(seal_folder_holds(dir));
    free(a), free(b), free(sums);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(damaged_files_are_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(swapped_files_are_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(swapped_folders_are_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged_folders_are_seen, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
