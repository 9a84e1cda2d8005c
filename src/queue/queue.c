/* queue.c - see queue.h. Every change is one statement or one IMMEDIATE transaction; waiting is on inotify, because
 * every commit writes the WAL file beside the database. */
#include "queue/queue.h"

#include <poll.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "store/store.h"

#define QUEUE_VERSION 1
#define WAIT_SLICE_S 0.5 /* leases expire without anybody writing: look again this often */

enum job_state { JOB_WAITING, JOB_LEASED, JOB_DONE, JOB_FAILED };

static const char schema[] =
    "CREATE TABLE job(id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE NOT NULL, payload TEXT NOT NULL,"
    " state INTEGER NOT NULL DEFAULT 0, attempt INTEGER NOT NULL DEFAULT 0, lease INTEGER NOT NULL DEFAULT 0,"
    " worker TEXT, expires REAL NOT NULL DEFAULT 0, result TEXT);"
    "CREATE INDEX job_state ON job(state, id);";

struct queue {
    sqlite3 *db;
    int watch; /* inotify, or -1 */
};

static double clock_s(void) /* shared by processes and meaningful after a restart, hence not monotonic */
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static int broken(struct queue *q, struct err *e)
{
    return err_set(e, ERR_ENV, "job queue: %s", sqlite3_errmsg(q->db));
}

static int watch_folder(const char *path)
{
    char *dir = xstrdup(path), *slash = strrchr(dir, '/');
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (slash)
        *(slash == dir ? slash + 1 : slash) = 0;
    if (fd >= 0 && inotify_add_watch(fd, slash ? dir : ".", IN_MODIFY) < 0) {
        close(fd);
        fd = -1;
    }
    free(dir);
    return fd;
}

int queue_open(const char *path, struct queue **ret, struct err *e)
{
    struct queue *q = xcalloc(1, sizeof *q);

    if (store_db_open(path, schema, QUEUE_VERSION, &q->db, e) < 0) {
        free(q);
        return -1;
    }
    q->watch = watch_folder(path);
    *ret = q;
    return 0;
}

void queue_close(struct queue *q)
{
    if (!q)
        return;
    if (q->watch >= 0)
        close(q->watch);
    sqlite3_close(q->db);
    free(q);
}

/* Binds by letter (t text, i integer, d double) and steps once. Returns the statement, or NULL with *e set. */
static sqlite3_stmt *step(struct queue *q, int *ret_rc, struct err *e, const char *sql, const char *types, ...)
{
    sqlite3_stmt *s = NULL;
    va_list ap;

    if (sqlite3_prepare_v2(q->db, sql, -1, &s, NULL) != SQLITE_OK) {
        broken(q, e);
        return NULL;
    }
    va_start(ap, types);
    for (int i = 0; types[i]; i++) {
        if (types[i] == 't')
            sqlite3_bind_text(s, i + 1, va_arg(ap, const char *), -1, SQLITE_TRANSIENT);
        else if (types[i] == 'i')
            sqlite3_bind_int64(s, i + 1, va_arg(ap, int64_t));
        else
            sqlite3_bind_double(s, i + 1, va_arg(ap, double));
    }
    va_end(ap);
    *ret_rc = sqlite3_step(s);
    if (*ret_rc != SQLITE_ROW && *ret_rc != SQLITE_DONE) {
        broken(q, e);
        sqlite3_finalize(s);
        return NULL;
    }
    return s;
}

/* Finalises; returns rows changed by the statement, or -1 (s NULL: the step had failed). */
static int end(struct queue *q, sqlite3_stmt *s, struct err *e)
{
    if (!s)
        return -1;
    if (sqlite3_finalize(s) != SQLITE_OK)
        return broken(q, e);
    return sqlite3_changes(q->db);
}

static char *column(sqlite3_stmt *s, int i)
{
    const char *text = (const char *)sqlite3_column_text(s, i);

    return xstrndup(text ? text : "", (size_t)sqlite3_column_bytes(s, i));
}

int queue_put(struct queue *q, const char *key, const char *payload, int64_t *ret_id, struct err *e)
{
    int rc;

    if (end(q, step(q, &rc, e, "INSERT INTO job(key, payload) VALUES(?, ?) ON CONFLICT(key) DO NOTHING", "tt", key, payload),
            e) < 0)
        return -1;
    sqlite3_stmt *s = step(q, &rc, e, "SELECT id FROM job WHERE key = ?", "t", key);
    if (s && rc == SQLITE_ROW)
        *ret_id = sqlite3_column_int64(s, 0);
    else if (s)
        err_set(e, ERR_BUG, "job queue: a job vanished while it was put");
    return end(q, s, e) < 0 || rc != SQLITE_ROW ? -1 : 0;
}

static int claim_once(struct queue *q, const char *worker, double lease_s, struct queue_job *ret, struct err *e)
{
    static const char sql[] =
        "UPDATE job SET state = 1, attempt = attempt + 1, lease = lease + 1, worker = ?, expires = ? WHERE id ="
        " (SELECT id FROM job WHERE state = 0 OR (state = 1 AND expires < ?) ORDER BY state DESC, id LIMIT 1)"
        " RETURNING id, key, payload, attempt, lease";
    double now = clock_s();
    int rc, got;
    sqlite3_stmt *s = step(q, &rc, e, sql, "tdd", worker, now + lease_s, now);

    if (s && rc == SQLITE_ROW)
        *ret = (struct queue_job){.id = sqlite3_column_int64(s, 0), .key = column(s, 1), .payload = column(s, 2),
                                  .attempt = sqlite3_column_int(s, 3), .lease = sqlite3_column_int64(s, 4)};
    got = s && rc == SQLITE_ROW;
    while (s && rc == SQLITE_ROW) /* the update commits when the statement is done */
        rc = sqlite3_step(s);
    if (end(q, s, e) < 0) {
        if (got)
            queue_job_free(ret);
        return -1;
    }
    return got;
}

/* Waiting workers look before they ask for the write lock, so that an idle pool does not keep others from it. */
static int has_work(struct queue *q, struct err *e)
{
    int rc;
    sqlite3_stmt *s = step(q, &rc, e, "SELECT 1 FROM job WHERE state = 0 OR (state = 1 AND expires < ?) LIMIT 1", "d",
                           clock_s());

    if (!s)
        return -1;
    sqlite3_finalize(s);
    return rc == SQLITE_ROW;
}

int queue_claim(struct queue *q, const char *worker, double lease_s, double wait_s, struct queue_job *ret, struct err *e)
{
    double deadline = now_s() + wait_s;

    for (;;) {
        int got = has_work(q, e);
        double left = deadline - now_s();
        if (got == 1)
            got = claim_once(q, worker, lease_s, ret, e);
        if (got != 0 || left <= 0 || stop_requested())
            return got;
        queue_wait_change(q, left);
    }
}

void queue_job_free(struct queue_job *j)
{
    free(j->key);
    free(j->payload);
    memset(j, 0, sizeof *j);
}

int queue_heartbeat(struct queue *q, const struct queue_job *j, double lease_s, struct err *e)
{
    int rc;

    return end(q, step(q, &rc, e, "UPDATE job SET expires = ? WHERE id = ? AND lease = ? AND state = 1", "dii",
                       clock_s() + lease_s, j->id, j->lease), e);
}

int queue_finish(struct queue *q, int64_t id, const char *result, struct err *e)
{
    int rc;

    return end(q, step(q, &rc, e, "UPDATE job SET state = 2, result = ?, payload = '' WHERE id = ? AND state < 2", "ti",
                       result, id), e) < 0 ? -1 : 0;
}

int queue_fail(struct queue *q, const struct queue_job *j, const char *reason, int max_attempts, struct err *e)
{
    int rc;

    return end(q, step(q, &rc, e, "UPDATE job SET state = CASE WHEN attempt >= ?1 THEN 3 ELSE 0 END, result = ?2"
                                  " WHERE id = ?3 AND lease = ?4 AND state = 1", "itii", (int64_t)max_attempts, reason,
                       j->id, j->lease), e) < 0 ? -1 : 0;
}

int queue_release_worker(struct queue *q, const char *worker, struct err *e)
{
    int rc;

    return end(q, step(q, &rc, e, "UPDATE job SET state = 0 WHERE state = 1 AND worker = ?", "t", worker), e);
}

int queue_give_up(struct queue *q, int max_attempts, const char *reason, struct err *e)
{
    int rc;

    return end(q, step(q, &rc, e, "UPDATE job SET state = 3, result = ? WHERE state = 0 AND attempt >= ?", "ti", reason,
                       (int64_t)max_attempts), e);
}

int queue_result(struct queue *q, int64_t id, char **ret_result, bool *ret_failed, struct err *e)
{
    int rc, state = -1;
    sqlite3_stmt *s = step(q, &rc, e, "SELECT state, result FROM job WHERE id = ?", "i", id);

    if (!s)
        return -1;
    if (rc == SQLITE_ROW && (state = sqlite3_column_int(s, 0)) >= JOB_DONE) {
        *ret_result = column(s, 1);
        if (ret_failed)
            *ret_failed = state == JOB_FAILED;
    }
    sqlite3_finalize(s);
    if (state < 0)
        return err_set(e, ERR_BUG, "job queue: job %lld is not there", (long long)id);
    return state >= JOB_DONE;
}

void queue_wait_change(struct queue *q, double wait_s)
{
    struct pollfd p = {.fd = q->watch, .events = POLLIN};
    char events[4096];

    if (wait_s > WAIT_SLICE_S)
        wait_s = WAIT_SLICE_S;
    if (q->watch < 0 && wait_s > 0.02)
        wait_s = 0.02;
    if (poll(&p, q->watch >= 0, (int)(wait_s * 1000) + 1) > 0)
        while (read(q->watch, events, sizeof events) > 0)
            ;
}

int queue_forget(struct queue *q, int64_t id, struct err *e)
{
    int rc;

    return end(q, step(q, &rc, e, "DELETE FROM job WHERE id = ? AND state >= 2", "i", id), e) < 0 ? -1 : 0;
}

int queue_stats(struct queue *q, struct queue_stats *ret, struct err *e)
{
    int64_t n[4] = {0};
    int rc;
    sqlite3_stmt *s = step(q, &rc, e, "SELECT state, count(*) FROM job GROUP BY state", "");

    if (!s)
        return -1;
    for (; rc == SQLITE_ROW; rc = sqlite3_step(s))
        n[sqlite3_column_int(s, 0) & 3] = sqlite3_column_int64(s, 1);
    if (end(q, s, e) < 0)
        return -1;
    *ret = (struct queue_stats){.waiting = n[JOB_WAITING], .leased = n[JOB_LEASED], .done = n[JOB_DONE],
                                .failed = n[JOB_FAILED]};
    return 0;
}
