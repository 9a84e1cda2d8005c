/* test_store.c - the verdict cache and artefacts: what is kept, what never is, damage, single flight. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "store/store.h"

static char *dir;

static int make_dir(void **state)
{
    return (dir = dir_temp("test-store", NULL)) ? 0 : -1;
}

static int drop_dir(void **state)
{
    dir_remove(dir, NULL);
    free(dir);
    return 0;
}

static void keeps_verdicts_but_never_timeouts_or_infra(void **state)
{
    char *path = path_join(dir, "deep/v.db"), key[65], other[65];
    json_t *passed = json_pack("{s:s,s:n,s:f}", "status", "passed", "category", "reward", 1.5), *got = NULL;
    json_t *late = json_pack("{s:s,s:s}", "status", "failed", "category", "timeout");
    json_t *infra = json_pack("{s:s,s:s}", "status", "infra", "category", "infra");
    struct err e = ERR_INIT;
    struct store *s;
    struct stat st;

    store_key("t", "c", "{}", "gcc", key);
    store_key("tc", "", "{}", "gcc", other); /* fields must not run into each other */
    assert_string_not_equal(key, other);
    umask(022);
    assert_int_equal(store_open(path, &s, &e), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600); /* programs of tenants are not everybody's to read */
    assert_int_equal(store_get(s, key, &got, &e), 0);
    assert_int_equal(store_put(s, key, late, &e), 0);
    assert_int_equal(store_put(s, key, infra, &e), 0);
    assert_int_equal(store_get(s, key, &got, &e), 0);
    assert_int_equal(store_put(s, key, passed, &e), 1);
    store_close(s);
    assert_int_equal(store_open(path, &s, &e), 0);
    assert_int_equal(store_get(s, key, &got, &e), 1);
    assert_true(json_equal(got, passed));
    store_close(s);
    json_decref(got), json_decref(passed), json_decref(late), json_decref(infra);
    free(path);
}

#define NO_DATABASE "this is not a database, but long enough to be read as one by a careless library....."

static void damage_is_one_clear_error(void **state)
{
    char *path = path_join(dir, "bad.db");
    struct err e = ERR_INIT;
    struct sqlite3 *db = NULL;

    file_write(path, NO_DATABASE, strlen(NO_DATABASE), &e);
    assert_int_equal(store_db_open(path, "CREATE TABLE a(b);", 1, &db, &e), STORE_DB_UNUSABLE);
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.msg, path));
    assert_non_null(strstr(e.msg, "move it away"));
    free(path);
}

static void must_do_sql(const char *path, const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void must_keep_a_verdict(const char *path)
{
    json_t *passed = json_pack("{s:s}", "status", "passed"), *got = NULL;
    struct err e = ERR_INIT;
    struct store *s = NULL;

    assert_int_equal(store_open(path, &s, &e), 0);
    assert_int_equal(store_put(s, "k", passed, &e), 1);
    store_close(s);
    assert_int_equal(store_open(path, &s, &e), 0);
    assert_int_equal(store_get(s, "k", &got, &e), 1);
    store_close(s);
    json_decref(got), json_decref(passed);
}

/* A cache that this version cannot use is set aside whole, and a new one takes its place. */
static void an_unusable_cache_is_set_aside(void **state)
{
    char *path = path_join(dir, "c.db"), *old = path_join(dir, "c.db.old");
    struct err e = ERR_INIT;
    struct store *s = NULL;
    struct buf b;

    must_keep_a_verdict(path);
    must_do_sql(path, "PRAGMA user_version = 7");
    assert_int_equal(store_open(path, &s, &e), 0);
    store_close(s);
    must_do_sql(old, "INSERT INTO verdict SELECT key || '2', record, made FROM verdict WHERE key = 'k'");
    must_keep_a_verdict(path);
    assert_int_equal(file_write(path, NO_DATABASE, strlen(NO_DATABASE), &e), 0);
    must_keep_a_verdict(path);
    buf_init(&b, 4096);
    assert_int_equal(file_read(old, &b, &e), 0);
    assert_string_equal(b.p, NO_DATABASE);
    buf_free(&b);
    free(path);
    free(old);
}

/* '--queue mail.db': what others keep is not changed by a byte, whatever their version is called. */
static void a_foreign_database_is_left_alone(void **state)
{
    char *path = path_join(dir, "mail.db");
    struct err e = ERR_INIT;
    struct store *s = NULL;

    for (int version = 0; version < 2; version++) {
        struct buf was, is;

        must_do_sql(path, version ? "PRAGMA user_version = 1" : "CREATE TABLE mail(a); INSERT INTO mail VALUES(1)");
        buf_init(&was, 1 << 20), buf_init(&is, 1 << 20);
        assert_int_equal(file_read(path, &was, &e), 0);
        assert_int_equal(store_open(path, &s, &e), -1);
        assert_int_equal(e.kind, ERR_INPUT);
        assert_non_null(strstr(e.msg, "is a database of something else"));
        assert_int_equal(file_read(path, &is, &e), 0);
        assert_int_equal(is.n, was.n);
        assert_memory_equal(is.p, was.p, was.n);
        buf_free(&was), buf_free(&is);
    }
    free(path);
}

static void one_makes_while_others_wait(void **state)
{
    char *made = artefact_path(dir, "abcdef", ".so"), *log = path_join(dir, "made.log");
    struct err e = ERR_INIT;
    struct buf b;

    for (int i = 0; i < 4; i++)
        if (fork() == 0) {
            int lock = artefact_lock(dir, "abcdef", 10, &e);
            if (lock >= 0 && !file_exists(made)) {
                usleep(50000);
                file_append(log, "x", 1, &e);
                file_write(made, "so", 2, &e);
            }
            artefact_unlock(lock);
            _exit(lock < 0);
        }
    for (int i = 0, st; i < 4; i++) {
        wait(&st);
        assert_int_equal(st, 0);
    }
    buf_init(&b, 100);
    assert_int_equal(file_read(log, &b, &e), 0);
    assert_string_equal(b.p, "x");
    buf_free(&b);
    int held = artefact_lock(dir, "k", 1, &e);
    pid_t pid = fork();
    if (pid == 0)
        _exit(artefact_lock(dir, "k", 0.05, &e) >= 0);
    int st;
    waitpid(pid, &st, 0);
    assert_int_equal(st, 0); /* the deadline holds */
    artefact_unlock(held);
    free(made), free(log);
}

#define CROWD 12
#define ROUNDS 40

/* One of a crowd: opens, writes, reads and closes again and again, so that some are the first and some the last to have
 * the file open. 0, or what went wrong on stderr. */
static int one_of_a_crowd(const char *path, int go, int me)
{
    json_t *record = json_pack("{s:s,s:n,s:i}", "status", "passed", "category", "reward", me), *got = NULL;
    struct err e = ERR_INIT;
    struct store *s;
    char key[65], byte;
    int bad = read(go, &byte, 1); /* 0 when the gate opens */

    for (int i = 0; i < 5 && !bad; i++) {
        snprintf(key, sizeof key, "%d-%d", me, i);
        if (store_open(path, &s, &e) < 0)
            bad = 1;
        else {
            bad = store_put(s, key, record, &e) != 1 || store_get(s, key, &got, &e) != 1 || !json_equal(got, record);
            store_close(s);
        }
    }
    if (bad)
        fprintf(stderr, "process %d: %s\n", me, e.msg);
    return bad;
}

/* A new file each round: making it, and leaving its first journal for another, happen while others are at it. */
static void a_crowd_is_never_locked_out(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        char name[32];
        int gate[2], bad = 0;

        snprintf(name, sizeof name, "crowd%d.db", round);
        char *path = path_join(dir, name);
        assert_int_equal(pipe(gate), 0);
        for (int i = 0; i < CROWD; i++)
            if (fork() == 0) {
                close(gate[1]);
                _exit(one_of_a_crowd(path, gate[0], i));
            }
        close(gate[1]);
        close(gate[0]);
        for (int i = 0, st; i < CROWD; i++) {
            wait(&st);
            bad += st != 0;
        }
        assert_int_equal(bad, 0);
        free(path);
    }
}

/* What the file holds now in the row of the one record. */
static void alter_record(const char *path, const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1);
    sqlite3_close(db);
}

/* Another number, a cut, an end that is gone, or a row of another key: no record; it is judged again and kept. */
static void altered_records_are_none(void **state)
{
    static const char *const values[] = {"replace(record, '1.5', '9.5')", "substr(record, 1, 9)", "record || 'x'",
                                         "substr(record, 1, length(record) - 66)",
                                         "(SELECT record FROM verdict WHERE key = 'other')"};
    char sql[200];
    json_t *passed = json_pack("{s:s,s:n,s:f}", "status", "passed", "category", "reward", 1.5), *got = NULL;
    char *path = path_join(dir, "altered.db"), key[65];
    struct err e = ERR_INIT;
    struct store *s;

    (void)state;
    log_set_level(LOG_ERROR);
    store_key("t", "c", "{}", "gcc", key);
    assert_int_equal(store_open(path, &s, &e), 0);
    assert_int_equal(store_put(s, "other", passed, &e), 1);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        assert_int_equal(store_put(s, key, passed, &e), 1);
        snprintf(sql, sizeof sql, "UPDATE verdict SET record = %s WHERE key <> 'other'", values[i]);
        alter_record(path, sql);
        assert_int_equal(store_get(s, key, &got, &e), 0);
    }
    assert_int_equal(store_put(s, key, passed, &e), 1);
    assert_int_equal(store_get(s, key, &got, &e), 1);
    assert_true(json_equal(got, passed));
    store_close(s);
    json_decref(passed), json_decref(got);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_verdicts_but_never_timeouts_or_infra),
        cmocka_unit_test(damage_is_one_clear_error),
        cmocka_unit_test(an_unusable_cache_is_set_aside),
        cmocka_unit_test(a_foreign_database_is_left_alone),
        cmocka_unit_test(one_makes_while_others_wait),
        cmocka_unit_test(a_crowd_is_never_locked_out),
        cmocka_unit_test(altered_records_are_none),
    };

    return cmocka_run_group_tests(tests, make_dir, drop_dir);
}
