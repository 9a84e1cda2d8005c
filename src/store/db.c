/* db.c - opening a SQLite file the way all of ours are opened. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/store.h"

#define BUSY_MS 20000
#define RETRY_NS 5000000L
#define VERSION_SQL "PRAGMA user_version"

/* Says what SQLite's error means and what to do. Always -1. */
static int db_fail(const char *path, sqlite3 *db, struct err *e)
{
    int code = sqlite3_errcode(db);

    if (stop_requested())
        return err_set(e, ERR_STOP, "interrupted");
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT) {
        err_set(e, ERR_ENV, "'%s' is damaged or not a database of ours; move it away and run again", path);
        return STORE_DB_UNUSABLE;
    }
    if (code == SQLITE_FULL)
        return err_set(e, ERR_ENV, "cannot write '%s': the disk is full; free some space and run again", path);
    return err_set(e, ERR_ENV, "cannot use '%s': %s", path, sqlite3_errmsg(db));
}

/* Makes a file a WAL one, which reads it and then takes it alone. Of two processes that do so to a new file at once,
 * one would have to go back: SQLite says 'busy' to it and does not wait as elsewhere. So we do. */
static int db_use_wal(sqlite3 *db)
{
    double until = now_s() + BUSY_MS / 1e3;
    int rc;

    while ((rc = sqlite3_exec(db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL)) == SQLITE_BUSY && now_s() < until &&
           !stop_requested())
        nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
    return rc;
}

/* The one number that a statement gives. 0 or -1. */
static int db_number(sqlite3 *db, const char *sql, int *ret)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);

    if (rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        *ret = sqlite3_column_int(s, 0);
    else
        rc = SQLITE_ERROR;
    sqlite3_finalize(s);
    return rc == SQLITE_OK ? 0 : -1;
}

/* Two processes may find a new file at the same time: the second one waits for the lock and then sees the version. */
static int db_make_schema(sqlite3 *db, const char *path, const char *schema, int version, struct err *e)
{
    char *stamp = xasprintf("PRAGMA user_version = %d", version);
    int have = 0, rc = 0;

    if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK || db_number(db, VERSION_SQL, &have) < 0 ||
        (have == 0 && (sqlite3_exec(db, schema, NULL, NULL, NULL) != SQLITE_OK ||
                       sqlite3_exec(db, stamp, NULL, NULL, NULL) != SQLITE_OK)) ||
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        rc = db_fail(path, db, e);
    free(stamp);
    return rc;
}

/* Anybody's SQLite file that was named by mistake: it has tables, and not the first one of the schema. Nothing in it is
 * changed. Tables and the version of ours come at once, so that other processes may be making the file meanwhile. */
static int db_check_tables(sqlite3 *db, const char *path, const char *schema, struct err *e)
{
    const char *word = "CREATE TABLE ", *name = strstr(schema, word);
    char *sql;
    int foreign = 0, rc;

    if (!name)
        return 0;
    name += strlen(word);
    sql = xasprintf("SELECT count(*) > 0 AND sum(name = '%.*s') = 0 FROM sqlite_master WHERE type = 'table'",
                          (int)strcspn(name, "( "), name);
    rc = db_number(db, sql, &foreign);
    free(sql);
    if (rc < 0)
        return db_fail(path, db, e);
    return foreign ? err_set(e, ERR_INPUT, "'%s' is a database of something else and is left as it is; name another "
                                           "file", path)
                   : 0;
}

static int db_open_checked(sqlite3 *db, const char *path, const char *schema, int version, struct err *e)
{
    int have = 0, rc;

    sqlite3_busy_timeout(db, BUSY_MS);
    if ((rc = db_check_tables(db, path, schema, e)) < 0)
        return rc;
    if (db_number(db, VERSION_SQL, &have) < 0)
        return db_fail(path, db, e);
    if (have && have != version) {
        err_set(e, ERR_ENV, "'%s' was written by another version (%d, ours is %d); move it away and run again", path,
                have, version);
        return STORE_DB_UNUSABLE;
    }
    if (db_use_wal(db) != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON", NULL, NULL, NULL) != SQLITE_OK)
        return db_fail(path, db, e);
    return have ? 0 : db_make_schema(db, path, schema, version, e);
}

int store_db_open(const char *path, const char *schema, int version, struct sqlite3 **ret, struct err *e)
{
    sqlite3 *db = NULL;
    char *dir = path_folder(path);
    int rc = dir_make(dir, e), fd;

    free(dir);
    if (rc < 0)
        return -1;
    if ((fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) >= 0) /* programs of tenants: not everybody's */
        close(fd);
    if (sqlite3_open(path, &db) != SQLITE_OK) {
        rc = db_fail(path, db, e);
        sqlite3_close(db);
        return rc;
    }
    rc = db_open_checked(db, path, schema, version, e);
    if (rc < 0)
        sqlite3_close(db);
    else
        *ret = db;
    return rc;
}
