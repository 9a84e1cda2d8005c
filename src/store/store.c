/* store.c - the verdict cache. One connection, guarded by a mutex: verdicts are small and rare beside their making. */
#include "store/store.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/seal.h"

#define STORE_VERSION 1
#define RENEW_S 20.0
#define TOUCH_S 86400 /* a record that is used is marked so once a day, not at every use */

static const char schema[] = "CREATE TABLE verdict(key TEXT PRIMARY KEY, record TEXT NOT NULL, made INTEGER NOT NULL)"
                             " WITHOUT ROWID;";

struct store {
    pthread_mutex_t lock;
    sqlite3 *db;
};

/* The file with its log, so that the old name is free and PATH.old is whole. */
static int store_move_aside(const char *path, struct err *e)
{
    static const char *const parts[] = {"-wal", "-shm", ""};
    int rc = 0;

    for (size_t i = 0; i < sizeof parts / sizeof *parts && rc == 0; i++) {
        char *from = xasprintf("%s%s", path, parts[i]), *to = xasprintf("%s.old%s", path, parts[i]);

        unlink(to); /* an earlier one's log would be taken for this one's */
        if (rename(from, to) < 0 && errno != ENOENT)
            rc = err_sys(e, "cannot move '%s' aside", from);
        free(from);
        free(to);
    }
    return rc;
}

/* One process at a time, which looks again: another may have done it. */
static int store_renew(const char *path, const struct err *why, sqlite3 **ret, struct err *e)
{
    char *lock = xasprintf("%s.lock", path);
    int fd = lock_file(lock, RENEW_S, e), rc = fd < 0 ? -1 : store_db_open(path, schema, STORE_VERSION, ret, NULL);

    if (rc == STORE_DB_UNUSABLE) {
        log_warn("%.*s; it is moved to '%s.old'", (int)strcspn(why->msg, ";"), why->msg, path);
        rc = store_move_aside(path, e);
    }
    if (fd >= 0 && !*ret)
        rc = rc == 0 ? store_db_open(path, schema, STORE_VERSION, ret, e) : -1;
    if (fd >= 0)
        close(fd);
    free(lock);
    return rc;
}

int store_open(const char *path, struct store **ret, struct err *e)
{
    char *own = path ? NULL : path_cache("verdicts.db");
    struct store *s = xcalloc(1, sizeof *s);
    struct err why = ERR_INIT;
    int rc = store_db_open(path ? path : own, schema, STORE_VERSION, &s->db, &why);

    if (rc == STORE_DB_UNUSABLE)
        rc = store_renew(path ? path : own, &why, &s->db, e);
    else if (rc < 0)
        err_set(e, why.kind, "%s", why.msg);
    free(own);
    if (rc < 0) {
        free(s);
        return -1;
    }
    pthread_mutex_init(&s->lock, NULL);
    *ret = s;
    return 0;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    sqlite3_close(s->db);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void store_key(const char *task_sha256, const char *candidate_sha256, const char *options, const char *toolchain,
               char ret_key[65])
{
    struct sha256 h;

    sha256_start(&h);
    sha256_adds(&h, task_sha256);
    sha256_adds(&h, candidate_sha256);
    sha256_adds(&h, options);
    sha256_adds(&h, toolchain);
    sha256_end(&h, ret_key);
}

/* ERR_ENV with SQLite's words. Always -1. */
static int store_broken(struct store *s, struct err *e)
{
    return err_set(e, ERR_ENV, "verdict cache: %s", sqlite3_errmsg(s->db));
}

/* 'made' is the day of the last use: what store_trim goes by. Failing to write it costs nothing. */
static void store_touch(struct store *s, const char *key, int64_t made)
{
    sqlite3_stmt *st = NULL;
    int64_t now = time(NULL);

    if (now - made < TOUCH_S ||
        sqlite3_prepare_v2(s->db, "UPDATE verdict SET made = ? WHERE key = ?", -1, &st, NULL) != SQLITE_OK)
        return;
    sqlite3_bind_int64(st, 1, now);
    sqlite3_bind_text(st, 2, key, -1, SQLITE_STATIC);
    sqlite3_step(st);
    sqlite3_finalize(st);
}

#define SEAL "#2" /* and a hash of key and text, behind a record's text */
#define SEAL_N 66

/* The hash that a stored record must carry. */
static void store_seal_of(const char *key, const char *text, size_t n, char ret[65])
{
    struct sha256 h;

    seal_start(&h, key);
    sha256_add(&h, text, n);
    sha256_end(&h, ret);
}

/* New text: the record, and its seal. */
static char *store_sealed(const char *key, const json_t *verdict)
{
    char *text = json_text(verdict), hex[65], *sealed;

    store_seal_of(key, text, strlen(text), hex);
    sealed = xasprintf("%s" SEAL "%s", text, hex);
    free(text);
    return sealed;
}

/* New record; NULL where the text is not what was written for this key. */
static json_t *store_unsealed(const char *key, const char *text, size_t n)
{
    char hex[65] = "";

    if (n <= SEAL_N || strncmp(text + n - SEAL_N, SEAL, 2))
        return NULL;
    n -= SEAL_N;
    store_seal_of(key, text, n, hex);
    return strncmp(text + n + 2, hex, 64) ? NULL : json_parse(text, n, "verdict cache", NULL);
}

/* A record that cannot be read, is another's, or an older version's, is none: it is judged again, and kept. */
static void store_drop(struct store *s, const char *key)
{
    sqlite3_stmt *st = NULL;

    log_info("a record of the verdict cache is damaged, or an older version's; it is judged again");
    if (sqlite3_prepare_v2(s->db, "DELETE FROM verdict WHERE key = ?", -1, &st, NULL) == SQLITE_OK) {
        sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
        sqlite3_step(st);
    }
    sqlite3_finalize(st);
}

int store_get(struct store *s, const char *key, json_t **ret, struct err *e)
{
    sqlite3_stmt *st = NULL;
    json_t *v = NULL;
    int64_t made = 0;
    bool damaged = false;
    int rc = -1;

    pthread_mutex_lock(&s->lock);
    if (sqlite3_prepare_v2(s->db, "SELECT record, made FROM verdict WHERE key = ?", -1, &st, NULL) == SQLITE_OK) {
        sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
        rc = sqlite3_step(st);
        if (rc == SQLITE_ROW)
            v = store_unsealed(key, (const char *)sqlite3_column_text(st, 0), (size_t)sqlite3_column_bytes(st, 0));
        made = sqlite3_column_int64(st, 1);
        damaged = rc == SQLITE_ROW && !v;
        rc = v ? 1 : rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : store_broken(s, e);
    } else {
        store_broken(s, e);
    }
    sqlite3_finalize(st);
    if (rc == 1)
        store_touch(s, key, made);
    if (damaged)
        store_drop(s, key);
    pthread_mutex_unlock(&s->lock);
    if (rc == 1)
        *ret = v;
    return rc;
}

/* Should there be times, but something of ours came between? */
static bool store_untimed(const json_t *verdict)
{
    const json_t *reasons = json_object_get(json_object_get(verdict, "performance"), "reasons"), *r;
    size_t i;

    json_array_foreach(reasons, i, r)
        if (json_is_string(r) && !strcmp(json_string_value(r), "not_measured"))
            return true;
    return false;
}

/* A time limit says something about this machine at this moment, infra and unsupported about this judge: none
 * sticks. */
static bool store_keepable(const json_t *verdict)
{
    const char *category = json_str(verdict, "category", "");

    const char *status = json_str(verdict, "status", "");

    return !store_untimed(verdict) && strcmp(category, "timeout") && strcmp(category, "infra") &&
           strcmp(status, "infra") &&
           strcmp(status, "unsupported");
}

int store_put(struct store *s, const char *key, const json_t *verdict, struct err *e)
{
    sqlite3_stmt *st = NULL;
    char *text;
    int rc = 1;

    if (!store_keepable(verdict))
        return 0;
    text = store_sealed(key, verdict);
    pthread_mutex_lock(&s->lock);
    if (sqlite3_prepare_v2(s->db, "INSERT OR IGNORE INTO verdict VALUES(?, ?, ?)", -1, &st, NULL) != SQLITE_OK ||
        sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_bind_text(st, 2, text, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_bind_int64(st, 3, (sqlite3_int64)time(NULL)) != SQLITE_OK || sqlite3_step(st) != SQLITE_DONE)
        rc = store_broken(s, e);
    sqlite3_finalize(st);
    pthread_mutex_unlock(&s->lock);
    free(text);
    return rc;
}

/* ---- trimming ---- */

/* The first number that a query gives; 0: none. */
static int64_t store_number(struct store *s, const char *sql)
{
    sqlite3_stmt *st = NULL;
    int64_t v = 0;

    if (sqlite3_prepare_v2(s->db, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
        v = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return v;
}

static int64_t store_used_bytes(struct store *s)
{
    return (store_number(s, "PRAGMA page_count") - store_number(s, "PRAGMA freelist_count")) *
           store_number(s, "PRAGMA page_size");
}

/* Deletes the oldest share of the records; records are of like size, so that is the share of the bytes too. */
static int store_drop_oldest(struct store *s, double share, struct err *e)
{
    int64_t n = (int64_t)((double)store_number(s, "SELECT count(*) FROM verdict") * share) + 1;
    sqlite3_stmt *st = NULL;
    int rc = 0;

    if (sqlite3_prepare_v2(s->db,
                           "DELETE FROM verdict WHERE key IN (SELECT key FROM verdict ORDER BY made, key LIMIT ?)", -1,
                           &st, NULL) != SQLITE_OK ||
        sqlite3_bind_int64(st, 1, n) != SQLITE_OK || sqlite3_step(st) != SQLITE_DONE)
        rc = store_broken(s, e);
    sqlite3_finalize(st);
    return rc;
}

int store_trim(struct store *s, uint64_t max_bytes, uint64_t *ret_bytes, struct err *e)
{
    int64_t have, want = (int64_t)(max_bytes - max_bytes / 10);
    bool dropped = false;
    int rc = 0;

    pthread_mutex_lock(&s->lock);
    have = store_used_bytes(s);
    if (have > (int64_t)max_bytes)
        while (rc == 0 && have > want && store_number(s, "SELECT EXISTS(SELECT 1 FROM verdict)")) {
            rc = store_drop_oldest(s, 1 - (double)want / (double)have, e);
            have = store_used_bytes(s);
            dropped = true;
        }
    if (rc == 0 && dropped) /* a reader or writer of another process may stand in the way: then the pages are reused */
        sqlite3_exec(s->db, "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    if (rc == 0 && ret_bytes)
        *ret_bytes = (uint64_t)(store_number(s, "PRAGMA page_count") * store_number(s, "PRAGMA page_size"));
    pthread_mutex_unlock(&s->lock);
    return rc;
}
