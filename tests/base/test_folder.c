/* test_folder.c - whose a folder is, who works in it, how it gets its name; inputs known by content; files
 * replaced. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "store/content.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/mem.h"

static char *dir;

static char *in_dir(const char *name, const char *text)
{
    struct err e = ERR_INIT;
    char *path = path_join(dir, name);

    if (text)
        assert_int_equal(file_write(path, text, strlen(text), &e), 0);
    return path;
}

static int setup(void **state)
{
    struct err e = ERR_INIT;

    (void)state;
    return (dir = dir_temp("folder", &e)) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    dir_remove(dir, NULL);
    free(dir);
    return 0;
}

static void foreign_folders_are_refused(void **state)
{
    struct err e = ERR_INIT;
    char *file = in_dir("precious.csv", "precious");

    (void)state;
    assert_int_equal(folder_claim(dir, "this run", &e), -1);
    assert_int_equal(e.kind, ERR_INPUT);
    assert_non_null(strstr(e.msg, "touch"));
    assert_int_equal(folder_empty(dir, &e), -1);
    assert_true(file_exists(file));
    assert_int_equal(folder_claim("", "this run", &e), -1);
    free(file);
}

static void a_dot_file_is_somebodys_too(void **state)
{
    struct err e = ERR_INIT;
    char *file = in_dir(".git", "x");

    (void)state;
    assert_int_equal(folder_claim(dir, "this run", &e), -1);
    free(file);
}

static void stamped_folders_are_emptied_and_stay_ours(void **state)
{
    struct err e = ERR_INIT;
    char *deep = in_dir("a/b", NULL), *file, *absent = in_dir("absent", NULL);

    (void)state;
    assert_int_equal(folder_claim(dir, "this run", &e), 0);
    assert_int_equal(dir_make(deep, &e), 0);
    file = in_dir("a/b/file", "text");
    assert_int_equal(folder_claim(dir, "this run", &e), 0);
    assert_true(file_exists(file));
    assert_int_equal(folder_empty(dir, &e), 0);
    assert_false(file_exists(deep));
    assert_true(stamp_is_in(dir));
    assert_int_equal(folder_empty(absent, &e), 0);
    free(deep), free(file), free(absent);
}

static void a_lock_is_held_once_and_sweeps(void **state)
{
    struct err e = ERR_INIT;
    char *left = in_dir("weights.tmp.0123456789abcdef", "x"), *numbered = in_dir("notes.tmp.4711", "x");
    char *user = in_dir("notes.tmp.md", "x");
    int a = -1, b = -1;

    (void)state;
    assert_int_equal(folder_lock(dir, "musacoder", &a, &e), 0);
    assert_false(file_exists(left));
    assert_true(file_exists(user) && file_exists(numbered));
    assert_int_equal(folder_lock(dir, "musacoder", &b, &e), -1);
    assert_int_equal(e.kind, ERR_INPUT);
    close(a);
    assert_int_equal(folder_lock(dir, "musacoder", &b, &e), 0);
    close(b);
    free(left), free(numbered), free(user);
}

static void a_committed_folder_takes_the_others_place(void **state)
{
    struct err e = ERR_INIT;
    char *work = in_dir("work", NULL), *path = in_dir("model", NULL), *file, **names;
    size_t n;

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(dir_make(work, &e), 0);
        free(in_dir(i ? "work/second" : "work/first", "x"));
        assert_int_equal(folder_commit(work, path, &e), 0);
        assert_false(file_exists(work));
    }
    file = in_dir("model/second", NULL);
    assert_true(file_exists(file));
    assert_int_equal(dir_list(path, &names, &n, &e), 0);
    assert_int_equal(n, 1);
    names_free(names, n);
    free(work), free(path), free(file);
}

static void what_dead_processes_left_is_swept(void **state)
{
    struct err e = ERR_INIT;
    char *alive, *dead, *next, *user = in_dir("sweep.notes", "x");
    int a = -1, b = -1, c = -1;

    (void)state;
    setenv("TMPDIR", dir, 1);
    assert_non_null(alive = folder_temp("sweep", &a, &e));
    assert_non_null(dead = folder_temp("sweep", &b, &e));
    close(b); /* as its process's end does */
    assert_non_null(next = folder_temp("sweep", &c, &e));
    assert_true(file_is_dir(alive) && file_is_dir(next) && file_exists(user));
    assert_false(file_exists(dead));
    unsetenv("TMPDIR");
    close(a), close(c);
    free(alive), free(dead), free(next), free(user);
}

static void names_stay_where_they_are_put(void **state)
{
    (void)state;
    assert_true(name_is_part("smoke") && name_is_part("a b") && name_is_part("..."));
    assert_false(name_is_part("") || name_is_part(".") || name_is_part(".."));
    assert_false(name_is_part("a/b") || name_is_part("/"));
}

static void inputs_are_known_by_content(void **state)
{
    struct err e = ERR_INIT;
    char *a = in_dir("a", "one"), *b = in_dir("b", "two"), *both = xasprintf("%s,%s", a, b), x[65], y[65];

    (void)state;
    assert_int_equal(content_digest(both, x, &e), 0);
    assert_int_equal(content_digest(both, y, &e), 0);
    assert_string_equal(x, y);
    free(in_dir("b", "owt"));
    assert_int_equal(content_digest(both, y, &e), 0);
    assert_string_not_equal(x, y);
    assert_int_equal(content_digest(dir, x, &e), 0);
    free(in_dir("c", ""));
    assert_int_equal(content_digest(dir, y, &e), 0);
    assert_string_not_equal(x, y);
    assert_int_equal(content_digest("/nonexistent/x", y, &e), -1);
    assert_int_equal(e.kind, ERR_INPUT);
    free(a), free(b), free(both);
}

static void links_and_modes_survive_a_write(void **state)
{
    struct err e = ERR_INIT;
    char *real = in_dir("real", "old"), *link = in_dir("link", NULL);
    struct stat st;
    struct buf b;

    (void)state;
    assert_int_equal(chmod(real, 0600), 0);
    assert_int_equal(symlink("real", link), 0);
    assert_int_equal(file_write(link, "new", 3, &e), 0);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(real, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    buf_init(&b, 100);
    assert_int_equal(file_read(real, &b, &e), 0);
    assert_string_equal(b.p, "new");
    buf_free(&b);
    assert_int_equal(dir_make("", &e), -1);
    free(real), free(link);
}

/* A folder that a model is exported to may be anybody's: nothing of theirs goes, and nothing below it. */
static void a_sweep_takes_our_own_alone(void **state)
{
    struct err e = ERR_INIT;
    char *ours = in_dir("config.json.tmp.0123456789abcdef", "x"), *user = in_dir("data.tmp.4711", "x"), *below;

    (void)state;
    assert_int_equal(dir_make(below = path_join(dir, "sub"), &e), 0);
    free(below);
    below = in_dir("sub/notes.tmp.4711", "x");
    folder_sweep(dir);
    assert_false(file_exists(ours));
    assert_true(file_exists(user));
    assert_true(file_exists(below));
    free(ours), free(user), free(below);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* A pipe, or a device, gets the bytes and stays what it is. */
static void what_is_no_plain_file_is_written_into(void **state)
{
    char *path = in_dir("pipe", NULL), got[8] = "";
    struct err e = ERR_INIT;
    struct stat st;
    int fd;

    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    fd = open(path, O_RDONLY | O_NONBLOCK);
    assert_int_equal(file_write(path, "whole", 5, &e), 0);
    assert_int_equal(read(fd, got, sizeof got), 5);
    assert_string_equal(got, "whole");
    assert_true(stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
    close(fd);
    free(path);
}

/* Links outside of ours are followed; one in a folder of ours, or below one, may name somebody's. */
static void nothing_is_written_through_links_of_ours(void **state)
{
    char *ours = path_join(dir, "ours"), *sub = path_join(ours, "sub"), *theirs = in_dir("theirs", "mine");
    char *file = path_join(sub, "file"), *out = path_join(ours, "out/x"), *up = path_join(ours, "out");
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(folder_claim(ours, "a test", &e), 0);
    assert_int_equal(dir_make(sub, &e), 0);
    assert_int_equal(symlink("../../theirs", file), 0);
    assert_int_equal(symlink("..", up), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(file_write(i ? out : file, "ours", 4, &e), -1);
        assert_int_equal(e.kind, ERR_INPUT);
        assert_int_equal(file_append(i ? out : file, "ours", 4, &e), -1);
    }
    assert_non_null(strstr(e.msg, "is a link, and what it names may be somebody's"));
    free(ours), free(sub), free(theirs), free(file), free(out), free(up);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_no_plain_file_is_written_into), TEST(nothing_is_written_through_links_of_ours),
        TEST(foreign_folders_are_refused),
        TEST(a_dot_file_is_somebodys_too),
        TEST(stamped_folders_are_emptied_and_stay_ours),
        TEST(a_lock_is_held_once_and_sweeps),
        TEST(a_sweep_takes_our_own_alone),
        TEST(a_committed_folder_takes_the_others_place),
        TEST(what_dead_processes_left_is_swept),
        TEST(names_stay_where_they_are_put),
        TEST(inputs_are_known_by_content),
        TEST(links_and_modes_survive_a_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
