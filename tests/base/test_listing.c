/* test_listing.c - what a command has made in its folder is known by its hash: changed, cut, missing and unfinished
 * results are told, former ones go, a user's files are nobody's business. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/listing.h"
#include "base/mem.h"

static char *dir;

static int setup(void **state)
{
    (void)state;
    return (dir = dir_temp("listing", NULL)) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    dir_remove(dir, NULL);
    free(dir);
    return 0;
}

static void put(const char *name, const char *text)
{
    char *path = path_join(dir, name);

    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
    free(path);
}

static const char *text_of(const char *name)
{
    static struct buf b;
    char *path = path_join(dir, name);

    buf_free(&b);
    buf_init(&b, 4096);
    assert_int_equal(file_read(path, &b, NULL), 0);
    free(path);
    return b.p;
}

static bool is_there(const char *name)
{
    char *path = path_join(dir, name);
    bool there = file_exists(path);

    free(path);
    return there;
}

/* A command that makes these results; 'end' is false for one that is stopped. */
static void make_results(const char *const *names, bool end)
{
    struct err e = ERR_INIT;
    struct listing *l;

    assert_int_equal(listing_begin(dir, "source", &l, &e), 0);
    for (; *names; names++)
        assert_int_equal(listing_write(l, *names, *names, strlen(*names), &e), 0);
    if (end)
        assert_int_equal(listing_end(l, false, NULL, &e), 0);
    listing_free(l);
}

static const char *const two[] = {"a.txt", "sub/b.txt", NULL}, *const one[] = {"a.txt", NULL};

static void make_two(void)
{
    char *sub = path_join(dir, "sub");

    assert_int_equal(dir_make(sub, NULL), 0);
    free(sub);
    make_results(two, true);
}

/* The words of the refusal; "" for none. */
static const char *check(const char *name)
{
    static struct err e;
    char *path = path_join(dir, name);

    e = (struct err)ERR_INIT;
    if (listing_check(path, &e) == 0)
        e.msg[0] = 0;
    else
        assert_int_equal(e.kind, ERR_INPUT);
    free(path);
    return e.msg;
}

static void whole_results_pass(void **state)
{
    make_two();
    put("mine.txt", "a user's");
    assert_string_equal(check(""), "");
    assert_string_equal(check("sub"), "");
    assert_string_equal(check("sub/b.txt"), "");
    assert_string_equal(check("mine.txt"), "");
    assert_true(listing_holds(dir));
}

static void changed_and_missing_results_are_told(void **state)
{
    char *path = path_join(dir, "sub/b.txt");

    make_two();
    put("sub/b.txt", "sub/b.tx");
    assert_non_null(strstr(check("sub"), "has changed since it was made"));
    assert_non_null(strstr(check(""), "copy it to a folder of your own"));
    assert_string_equal(check("a.txt"), ""); /* another result's damage is not its */
    assert_false(listing_holds(dir));
    remove(path);
    assert_non_null(strstr(check("sub"), "is gone"));
    free(path);
}

static void stopped_commands_are_told(void **state)
{
    make_two();
    make_results(one, false);
    assert_non_null(strstr(check("a.txt"), "is unfinished"));
    make_two();
    assert_string_equal(check(""), "");
}

static void former_results_go(void **state)
{
    make_two();
    put("mine.txt", "a user's");
    make_results(one, true);
    assert_false(is_there("sub/b.txt"));
    assert_true(is_there("a.txt") && is_there("mine.txt"));
    make_two();
    put("sub/b.txt", "edited");
    make_results(one, true);
    assert_true(is_there("sub/b.txt")); /* somebody's work by now */
}

static void what_a_stopped_command_made_goes_too(void **state)
{
    make_two();
    make_results((const char *const[]){"a.txt", "late.txt", NULL}, false);
    make_results(one, true);
    assert_false(is_there("late.txt") || is_there("sub/b.txt"));
}

static void another_source_is_refused(void **state)
{
    struct err e = ERR_INIT;
    struct listing *l;

    make_two();
    assert_int_equal(listing_begin(dir, "other", &l, &e), -1);
    assert_non_null(strstr(e.msg, "made of 'source', not of 'other'"));
    assert_null(l);
    assert_string_equal(check(""), "");
}

/* What somebody wrote under a result's name, or into a result, is kept beside it. */
static void edited_files_are_kept(void **state)
{
    make_two();
    make_results(one, true);
    put("sub/b.txt", "a user's");
    put("a.txt", "edited");
    make_two();
    assert_true(is_there("a.txt.edited") && is_there("sub/b.txt.edited"));
    assert_string_equal(check(""), "");
}

/* Each edit goes on under a name of its own, beside what a user has called so. */
static void every_edit_is_kept(void **state)
{
    make_two();
    put("a.txt", "first");
    make_two();
    put("a.txt", "second");
    put("sub/b.txt.edited", "a user's");
    put("sub/b.txt", "third");
    make_two();
    assert_string_equal(text_of("a.txt.edited"), "first");
    assert_string_equal(text_of("a.txt.edited.2"), "second");
    assert_string_equal(text_of("sub/b.txt.edited"), "a user's");
    assert_string_equal(text_of("sub/b.txt.edited.2"), "third");
}

/* In a folder that several processes fill, too: what was noted is replaced, what somebody changed is kept. */
static void edits_are_kept_where_several_write(void **state)
{
    struct err e = ERR_INIT;

    make_two();
    assert_int_equal(listing_replace(dir, "a.txt", "new", 3, &e), 0);
    assert_false(is_there("a.txt.edited"));
    put("sub/b.txt", "mine");
    assert_int_equal(listing_replace(dir, "sub/b.txt", "new", 3, &e), 0);
    assert_string_equal(text_of("sub/b.txt"), "new");
    assert_string_equal(text_of("sub/b.txt.edited"), "mine");
    assert_int_equal(listing_replace(dir, "sub/b.txt", "new", 3, &e), 0);
    assert_false(is_there("sub/b.txt.edited.2"));
}

/* One of the processes that fill the folder; it begins when nobody holds the pipe's other end. */
static int fill_folder(const char *folder, int number, int start)
{
    struct listing *l = NULL;
    char name[16], any;
    int rc;

    if (read(start, &any, 1) != 0 || folder_claim(folder, "a test", NULL) < 0 ||
        listing_begin(folder, NULL, &l, NULL) < 0)
        return 1;
    snprintf(name, sizeof name, "%d.txt", number);
    rc = listing_write(l, name, name, strlen(name), NULL) < 0 || listing_end(l, true, NULL, NULL) < 0;
    listing_free(l);
    return rc;
}

/* As 'make -j' does it: all begin with a folder that is not there, and each result is listed. */
static void processes_that_begin_at_once_list_all(void **state)
{
    enum { N = 12 };
    char *folder = path_join(dir, "new"), *sums = path_join(folder, LISTING_NAME), name[16];
    int start[2], status;
    struct buf b;

    (void)state;
    assert_int_equal(pipe(start), 0);
    for (int i = 0; i < N; i++)
        if (fork() == 0)
            close(start[1]), _exit(fill_folder(folder, i, start[0]));
    close(start[1]);
    for (int i = 0; i < N; i++)
        assert_true(wait(&status) > 0 && status == 0);
    buf_init(&b, 1 << 16);
    assert_int_equal(file_read(sums, &b, NULL), 0);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "  %d.txt", i);
        assert_non_null(strstr(b.p, name));
    }
    buf_free(&b), close(start[0]);
    free(folder), free(sums);
}

/* What was cut off a listing is not known by it: neither lines nor all of it. */
static void cut_listings_are_told(void **state)
{
    char *head;

    make_two();
    put(STAMP_NAME, "");
    head = xstrndup(text_of(LISTING_NAME), strcspn(text_of(LISTING_NAME), "\n") + 1);
    for (int i = 0; i < 3; i++) {
        put(LISTING_NAME, i == 0 ? head : i == 1 ? "" : "# nothing\n");
        assert_non_null(strstr(check("a.txt"), "is damaged"));
        assert_false(listing_holds(dir));
    }
    make_two();
    assert_string_equal(check(""), "");
    free(head);
}

/* A listing that somebody else wrote neither removes nor accuses what is not below the folder. */
static void foreign_listings_are_not_believed(void **state)
{
    char *sub = path_join(dir, "sub"), *sums = path_join(dir, LISTING_NAME), *line, *text, *whole;
    struct buf b;
    char hash[65];

    make_two();
    buf_init(&b, 4096);
    assert_int_equal(file_read(sums, &b, NULL), 0);
    *strstr(b.p, "# whole ") = 0;
    sha256_hex("a.txt", 5, hash);
    line = xasprintf("%s  ../a.txt\n%s  /etc/passwd\n%s  x/../../a.txt\n", hash, hash, hash);
    text = xasprintf("%s%s", b.p, line);
    sha256_hex(text, strlen(text), hash);
    whole = xasprintf("%s# whole %s\n", text, hash);
    put(LISTING_NAME, whole);
    assert_string_equal(check(""), "");
    free(text), free(whole), free(sums);
    sums = path_join(sub, LISTING_NAME);
    assert_int_equal(file_write(sums, line, strlen(line), NULL), 0); /* without our first line */
    assert_string_equal(check("sub"), "");
    buf_free(&b);
    free(sub), free(sums), free(line);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(whole_results_pass), T(changed_and_missing_results_are_told), T(stopped_commands_are_told),
        T(former_results_go), T(what_a_stopped_command_made_goes_too), T(another_source_is_refused),
        T(edited_files_are_kept), T(every_edit_is_kept), T(edits_are_kept_where_several_write),
        T(processes_that_begin_at_once_list_all), T(cut_listings_are_told),
        T(foreign_listings_are_not_believed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
