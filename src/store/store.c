/* store.c - the verdict cache. One connection, guarded by a mutex: verdicts are small and rare beside their making. */
#include "store/store.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"

#define STORE_VERSION 1

static const char schema[] = "CREATE TABLE verdict(key TEXT PRIMARY KEY, record TEXT NOT NULL, made INTEGER NOT NULL)"
                             " WITHOUT ROWID;";

struct store {
    pthread_mutex_t lock;
    sqlite3 *db;
};

int store_open(const char *path, struct store **ret, struct err *e)
{
    char *own = path ? NULL : path_cache("verdicts.db");
    struct store *s = xcalloc(1, sizeof *s);
    int rc = store_db_open(path ? path : own, schema, STORE_VERSION, &s->db, e);

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

static int broken(struct store *s, struct err *e)
{
    return err_set(e, ERR_ENV, "verdict cache: %s", sqlite3_errmsg(s->db));
}

int store_get(struct store *s, const char *key, json_t **ret, struct err *e)
{
    sqlite3_stmt *st = NULL;
    json_t *v = NULL;
    int rc = -1;

    pthread_mutex_lock(&s->lock);
    if (sqlite3_prepare_v2(s->db, "SELECT record FROM verdict WHERE key = ?", -1, &st, NULL) == SQLITE_OK) {
        sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
        rc = sqlite3_step(st);
        if (rc == SQLITE_ROW)
            v = json_parse((const char *)sqlite3_column_text(st, 0), (size_t)sqlite3_column_bytes(st, 0), "verdict cache",
                           e);
        rc = rc == SQLITE_ROW ? (v ? 1 : -1) : rc == SQLITE_DONE ? 0 : broken(s, e);
    } else {
        broken(s, e);
    }
    sqlite3_finalize(st);
    pthread_mutex_unlock(&s->lock);
    if (rc == 1)
        *ret = v;
    return rc;
}

/* A time limit says something about this machine at this moment, an infra verdict about ours: neither may stick. */
static bool keepable(const json_t *verdict)
{
    const char *category = json_str(verdict, "category", "");

    return strcmp(category, "timeout") && strcmp(category, "infra") && strcmp(json_str(verdict, "status", ""), "infra");
}

int store_put(struct store *s, const char *key, const json_t *verdict, struct err *e)
{
    sqlite3_stmt *st = NULL;
    char *text;
    int rc = 1;

    if (!keepable(verdict))
        return 0;
    text = json_text(verdict);
    pthread_mutex_lock(&s->lock);
    if (sqlite3_prepare_v2(s->db, "INSERT OR IGNORE INTO verdict VALUES(?, ?, ?)", -1, &st, NULL) != SQLITE_OK ||
        sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_bind_text(st, 2, text, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_bind_int64(st, 3, (sqlite3_int64)time(NULL)) != SQLITE_OK || sqlite3_step(st) != SQLITE_DONE)
        rc = broken(s, e);
    sqlite3_finalize(st);
    pthread_mutex_unlock(&s->lock);
    free(text);
    return rc;
}
