/* test_limit.c - the cache's bound: oldest first, what is young or locked stays, and makers and trimmers side by side
 * never disturb each other. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "store/limit.h"
#include "store/store.h"

#define KIB ((uint64_t)1024)
#define HOUR 3600.0

static char *dir;
static const char *const folders[] = {"build", "reference", NULL};

static int make_dir(void **state)
{
    return (dir = dir_temp("test-limit", NULL)) ? 0 : -1;
}

static int drop_dir(void **state)
{
    dir_remove(dir, NULL);
    free(dir);
    return 0;
}

/* dir/name with 64 KiB, last changed so many hours ago. */
static void make_file(const char *name, double hours)
{
    char *path = path_join(dir, name), *folder = xstrdup(path), data[64 * 1024];
    struct timespec t[2];
    struct err e = ERR_INIT;

    *strrchr(folder, '/') = 0;
    memset(data, 'x', sizeof data);
    assert_int_equal(dir_make(folder, &e), 0);
    assert_int_equal(file_write(path, data, sizeof data, &e), 0);
    clock_gettime(CLOCK_REALTIME, &t[0]);
    t[0].tv_sec -= (time_t)(hours * HOUR);
    t[1] = t[0];
    assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
    assert_int_equal(utimensat(AT_FDCWD, folder, t, 0), 0); // its own change is no use of the entry
    free(path);
    free(folder);
}

static bool is_there(const char *name)
{
    char *path = path_join(dir, name);
    struct stat st;
    bool yes = lstat(path, &st) == 0;

    free(path);
    return yes;
}

static struct cache_trimmed trim(uint64_t limit, double grace_s, double every_s, uint64_t other)
{
    struct cache_limit l = {.bytes = limit, .grace_s = grace_s, .every_s = every_s};
    struct cache_trimmed done;
    struct err e = ERR_INIT;

    assert_int_equal(cache_trim(dir, folders, &l, other, &done, &e), 0);
    return done;
}

static void choice_is_oldest_first(void **state)
{
    struct cache_entry v[] = {{"c", 30, 300}, {"a", 10, 100}, {"b", 20, 200}, {"d", 40, 400}};

    assert_int_equal(cache_choose(v, 4, 100, 1e9), 0); // just full
    assert_string_equal(v[0].path, "a");
    assert_string_equal(v[3].path, "d");
    assert_int_equal(cache_choose(v, 4, 99, 1e9), 1);
    assert_int_equal(cache_choose(v, 4, 95, 1e9), 2); // down to nine tenths of 95: 90 is too much
    assert_int_equal(cache_choose(v, 4, 95, 150), 1); // only what is older than 150
    assert_int_equal(cache_choose(v, 4, 0, 1e9), 4);
    assert_int_equal(cache_choose(v, 4, 0, 50), 0);
    assert_int_equal(cache_choose(v, 0, 0, 1e9), 0);
    assert_int_equal(cache_choose(NULL, 0, 0, 1e9), 0);
}

static void oldest_go_and_the_rest_stays(void **state)
{
    struct cache_trimmed done;

    make_file("build/aaaaaaaaaaaaaaaaaaaaaaa1/module.so", 30);
    make_file("build/aaaaaaaaaaaaaaaaaaaaaaa1.lock", 30);
    make_file("build/aaaaaaaaaaaaaaaaaaaaaaa2/module.so", 40);
    make_file("build/aaaaaaaaaaaaaaaaaaaaaaa2/result.json", 2); // used two hours ago: the whole entry is young
    make_file("build/555555555555555555555555.lock", 50);
    make_file("reference/ab/cdefcdefcdefcdefcdefcdef.ref", 20);
    make_file("reference/ab/cdefcdefcdefcdefcdefcdef.lock", 20);
    make_file("reference/cd/000000000000000000000000.ref", 10);
    make_file("build/bbbbbbbbbbbbbbbbbbbbbbbb/module.so", 0.5);
    make_file("build/.trash-1-1/module.so", 0.1);
    make_file("elsewhere/old", 99);
    done = trim(6 * 64 * KIB, HOUR, 0, 64 * KIB); // 6 files of 64 KiB in entries + folders, 5 allowed
    assert_true(done.looked && done.before >= 6 * 64 * KIB);
    assert_false(is_there("build/aaaaaaaaaaaaaaaaaaaaaaa1") || is_there("build/aaaaaaaaaaaaaaaaaaaaaaa1.lock") ||
                 is_there("build/555555555555555555555555.lock"));
    assert_false(is_there("build/.trash-1-1"));
    assert_true(is_there("build/aaaaaaaaaaaaaaaaaaaaaaa2/module.so") &&
                is_there("build/bbbbbbbbbbbbbbbbbbbbbbbb/module.so") && is_there("elsewhere/old"));
    assert_true(is_there("reference/cd/000000000000000000000000.ref"));
    assert_false(is_there("reference/ab/cdefcdefcdefcdefcdefcdef.ref")); // 5 of 5 are above nine tenths
    assert_true(done.after <= done.before - 2 * 64 * KIB && done.removed == 2);
    done = trim(1, HOUR, 0, 0);
    assert_false(is_there("build/aaaaaaaaaaaaaaaaaaaaaaa2") || is_there("reference/cd/000000000000000000000000.ref"));
    assert_true(is_there("build/bbbbbbbbbbbbbbbbbbbbbbbb/module.so")); // of the last hour, whatever the limit
    assert_true(done.after >= 64 * KIB);
    done = trim(0, 0, 0, 0); // no limit
    assert_true(!done.looked && is_there("build/bbbbbbbbbbbbbbbbbbbbbbbb"));
}

/* A cache folder that is somebody's project: its build/ holds what no version of ours would have put there. */
static void what_has_no_key_for_its_name_stays(void **state)
{
    static const char *const theirs[] = {"build/thesis.bin", "build/mine/app.o", "build/ab/notes", "reference/x.lock",
                                         "build/deadbeef"};

    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
        make_file(theirs[i], 99);
    make_file("build/prefix-ffffffffffffffffffffffff-host/module.o", 99);
    trim(1, 0, 0, 0);
    assert_false(is_there("build/prefix-ffffffffffffffffffffffff-host"));
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
        assert_true(is_there(theirs[i]));
}

static void locked_entries_stay(void **state)
{
    char *lock = path_join(dir, "build/eeeeeeeeeeeeeeeeeeeeeeee.lock");
    struct err e = ERR_INIT;
    int fd;

    make_file("build/eeeeeeeeeeeeeeeeeeeeeeee/module.so", 30);
    make_file("build/eeeeeeeeeeeeeeeeeeeeeeee.4711/part.o", 30); // what its maker works in
    assert_true((fd = lock_file(lock, 0, &e)) >= 0);
    assert_int_equal(lock_file(lock, 0, &e), -1);
    trim(1, 0, 0, 0);
    assert_true(is_there("build/eeeeeeeeeeeeeeeeeeeeeeee/module.so") &&
                is_there("build/eeeeeeeeeeeeeeeeeeeeeeee.4711/part.o") &&
                is_there("build/eeeeeeeeeeeeeeeeeeeeeeee.lock"));
    close(fd);
    trim(1, 0, 0, 0);
    assert_false(is_there("build/eeeeeeeeeeeeeeeeeeeeeeee") || is_there("build/eeeeeeeeeeeeeeeeeeeeeeee.4711") ||
                 is_there("build/eeeeeeeeeeeeeeeeeeeeeeee.lock"));
    free(lock);
}

static void links_are_not_followed(void **state)
{
    char *target = path_join(dir, "elsewhere"), *link = path_join(dir, "build/cccccccccccccccccccccccc");
    const struct timespec old[2] = {{1000, 0}, {1000, 0}};

    make_file("elsewhere/precious", 99);
    make_file("build/dddddddddddddddddddddddd/b", 99);
    assert_int_equal(symlink(target, link), 0);
    assert_int_equal(utimensat(AT_FDCWD, link, old, AT_SYMLINK_NOFOLLOW), 0);
    trim(1, HOUR, 0, 0);
    assert_false(is_there("build/cccccccccccccccccccccccc") || is_there("build/dddddddddddddddddddddddd"));
    assert_true(is_there("elsewhere/precious"));
    free(target);
    free(link);
}

static void looks_rarely(void **state)
{
    make_file("build/dddddddddddddddddddddddd/b", 99);
    assert_true(trim(1000 * KIB, 0, 600, 0).looked);
    assert_false(trim(1, 0, 600, 0).looked);
    assert_true(is_there("build/dddddddddddddddddddddddd"));
    assert_true(trim(1, 0, 0, 0).looked);
    assert_false(is_there("build/dddddddddddddddddddddddd"));
}

/* One of many: makes what is missing, one maker at a time (the O_EXCL file says so), and finds it whole when it is
 * there. */
static int maker(unsigned seed)
{
    char *build = path_join(dir, "build");
    struct err e = ERR_INIT;

    for (int i = 0; i < 150; i++) {
        char *entry = xasprintf("%s/%024u", build, (seed + (unsigned)i * 7) % 5), *lock = xasprintf("%s.lock", entry);
        char *part = xasprintf("%s/part", entry), *ready = xasprintf("%s/ready", entry),
            *mine = xasprintf("%s.busy", entry);
        char *work = xasprintf("%s.%d", entry, (int)getpid()), *w1 = path_join(work, "part"),
            *w2 = path_join(work, "ready");
        int fd = lock_file(lock, 30, &e), one;

        if (fd < 0 || (one = open(mine, O_CREAT | O_EXCL, 0600)) < 0)
            return 1; // two of us at once
        close(one);
        if (file_exists(ready) != file_exists(part))
            return 2; // half an entry
        if (!file_exists(ready) && (dir_make(work, &e) < 0 || file_write(w1, "1", 1, &e) < 0 ||
                                    file_write(w2, "1", 1, &e) < 0 || rename(work, entry) < 0))
            return 3;
        if (!file_exists(ready) || !file_exists(part))
            return 4; // taken from under us
        unlink(mine);
        close(fd);
        free(entry), free(lock), free(part), free(ready), free(mine), free(work), free(w1), free(w2);
    }
    free(build);
    return 0;
}

static int trimmer(void)
{
    struct cache_limit l = {.bytes = 1};
    struct cache_trimmed done;
    size_t removed = 0;

    for (int i = 0; i < 150; i++) {
        if (cache_trim(dir, folders, &l, 0, &done, NULL) < 0)
            return 5;
        removed += done.removed;
        usleep(1000);
    }
    return removed ? 0 : 6;
}

static void makers_and_trimmers_side_by_side(void **state)
{
    char *build = path_join(dir, "build");
    pid_t pids[5];
    struct err e = ERR_INIT;

    dir_make(build, &e);
    for (unsigned i = 0; i < 5; i++)
        if ((pids[i] = fork()) == 0)
            _exit(i < 4 ? maker(i) : trimmer());
    for (int i = 0; i < 5; i++) {
        int status = -1;
        waitpid(pids[i], &status, 0);
        if (status != 0)
            fail_msg("process %d ends with %d", i, WEXITSTATUS(status));
    }
    free(build);
}

static void verdicts_that_nobody_asks_for_go_first(void **state)
{
    char *path = path_join(dir, "v.db"), *text = xmalloc(4001), key[65];
    struct err e = ERR_INIT;
    uint64_t bytes;
    struct store *s;
    json_t *rec, *got;
    int kept = 0;

    memset(text, 'x', 4000);
    text[4000] = 0;
    rec = json_pack("{s:s,s:s}", "status", "passed", "feedback", text);
    assert_int_equal(store_open(path, &s, &e), 0);
    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof key, "%064d", i);
        assert_int_equal(store_put(s, key, rec, &e), 1);
    }
    assert_int_equal(store_trim(s, 64u << 20, &bytes, &e), 0);
    assert_true(bytes > 200 * 4000);
    assert_int_equal(store_trim(s, 400 * KIB, &bytes, &e), 0);
    assert_true(bytes <= 400 * KIB && bytes > 200 * KIB);
    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof key, "%064d", i);
        if (store_get(s, key, &got, &e) == 1) {
            kept++;
            json_decref(got);
        } else {
            assert_int_equal(kept, 0); // made at the same second: by key, so the first ones went
        }
    }
    assert_true(kept > 50 && kept < 100);
    store_close(s);
    json_decref(rec);
    free(path);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choice_is_oldest_first),
        cmocka_unit_test_setup_teardown(oldest_go_and_the_rest_stays, make_dir, drop_dir),
        cmocka_unit_test_setup_teardown(what_has_no_key_for_its_name_stays, make_dir, drop_dir),
        cmocka_unit_test_setup_teardown(locked_entries_stay, make_dir, drop_dir),
        cmocka_unit_test_setup_teardown(links_are_not_followed, make_dir, drop_dir),
        cmocka_unit_test_setup_teardown(looks_rarely, make_dir, drop_dir),
        cmocka_unit_test_setup_teardown(makers_and_trimmers_side_by_side, make_dir, drop_dir),
        cmocka_unit_test_setup_teardown(verdicts_that_nobody_asks_for_go_first, make_dir, drop_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
