/* sql_postgres.c - sql.h on a PostgreSQL server, through libpq, which is loaded when a server is named:
 * without it, and without a server, everything else works. A connection that breaks is made again; waiting is
 * LISTEN. */
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/dl.h"
#include "base/log.h"
#include "base/mem.h"
#include "queue/sql_driver.h"

#define PREPARED 64
#define AGAIN_S 30.0 /* how long a server that went away is asked for */
#define WAIT_SLICE_S 1.0
#define CHANNEL "musacoder"

/* X(name): what of libpq is used. */
#define PQ_CALLS(X)                                                                                          \
    X(PQconnectdbParams)                                                                                     \
    X(PQfinish) X(PQreset) X(PQstatus) X(PQerrorMessage) X(PQexec) X(PQprepare) X(PQexecPrepared)            \
        X(PQresultStatus) X(PQresultErrorField) X(PQclear) X(PQntuples) X(PQnfields) X(PQgetvalue)           \
            X(PQgetlength) X(PQcmdTuples) X(PQsocket) X(PQconsumeInput) X(PQnotifies) X(PQfreemem)           \
                X(PQsetNoticeProcessor)
#define PQ_MEMBER(name) __typeof__(&name) name;
static struct {
    PQ_CALLS(PQ_MEMBER)
} pq;

struct pg {
    PGconn *c;
    const char *prepared[PREPARED];
    int n_prepared;
    bool listens;
};

#define PQ_ROW(name) {#name, (void **)&pq.name},
static const struct dl_name pq_names[] = {PQ_CALLS(PQ_ROW){NULL, NULL}};

/* ERR_ENV with the server's words. Always -1. */
static int sql_postgres_broken(struct pg *p, struct err *e)
{
    char text[600];

    snprintf(text, sizeof text, "%s", pq.PQerrorMessage(p->c));
    for (char *end = text + strlen(text); end > text && strchr("\r\n ", end[-1]);)
        *--end = 0;
    return err_set(e, ERR_ENV, "job queue: PostgreSQL says: %s", text);
}

static bool sql_postgres_ended_well(const PGresult *r)
{
    ExecStatusType st = pq.PQresultStatus(r);

    return st == PGRES_TUPLES_OK || st == PGRES_COMMAND_OK;
}

/* Runs a statement without values. */
static int sql_postgres_simple(struct pg *p, const char *text, struct err *e)
{
    PGresult *r = pq.PQexec(p->c, text);
    int rc = sql_postgres_ended_well(r) ? 0 : sql_postgres_broken(p, e);

    pq.PQclear(r);
    return rc;
}

/* Text of one value, or NULL if nothing came back; caller frees. */
static char *sql_postgres_one_value(struct pg *p, const char *text)
{
    PGresult *r = pq.PQexec(p->c, text);
    char *v = sql_postgres_ended_well(r) && pq.PQntuples(r) > 0 ? xstrdup(pq.PQgetvalue(r, 0, 0)) : NULL;

    pq.PQclear(r);
    return v;
}

static void sql_postgres_no_notice(void *ctx, const char *text) {}

/* The schema is made by one of those who come at once: the others wait for its lock, then find the version.
 */
static int sql_postgres_make_schema(struct pg *p, const char *schema, int version, struct err *e)
{
    char *have, *stamp = xasprintf("INSERT INTO musacoder_queue(version) VALUES(%d)", version);
    int rc = -1;

    if (sql_postgres_simple(p,
                            "BEGIN; SELECT pg_advisory_xact_lock(6879831); CREATE TABLE IF NOT EXISTS "
                            "musacoder_queue(version INTEGER)",
                            e) == 0) {
        have = sql_postgres_one_value(p, "SELECT version FROM musacoder_queue");
        if (!have)
            rc = sql_postgres_simple(p, schema, e) < 0 || sql_postgres_simple(p, stamp, e) < 0 ? -1 : 0;
        else if (atoi(have) == version)
            rc = 0;
        else
            err_set(
                e, ERR_ENV,
                "the queue's database was made by another version (%s, ours is %d); name another database",
                have, version);
        free(have);
        if (rc == 0)
            rc = sql_postgres_simple(p, "COMMIT", e);
        else
            sql_postgres_simple(p, "ROLLBACK", NULL);
    }
    free(stamp);
    return rc;
}

/* Where the URL says nothing else: a server that a broken network hides is noticed within half a minute. */
static PGconn *sql_postgres_connect_to(const char *url)
{
    static const char *const names[] = {"connect_timeout", "keepalives_idle", "keepalives_interval", "keepalives_count",
                                        "tcp_user_timeout", "fallback_application_name", "dbname", NULL};
    const char *const values[] = {"10", "10", "5", "3", "20000", "musacoder", url, NULL};

    return pq.PQconnectdbParams(names, values, 1);
}

/* Opens the server's database and makes the schema. ERR_ENV: it cannot be reached. */
static int sql_postgres_pg_open(const char *url, const char *schema, int version, void **ret, struct err *e)
{
    struct pg *p;

    if (dl_load("libpq.so.5", "libpq5", pq_names, e) < 0)
        return -1;
    p = xcalloc(1, sizeof *p);
    p->c = sql_postgres_connect_to(url);
    pq.PQsetNoticeProcessor(p->c, sql_postgres_no_notice, NULL);
    if (pq.PQstatus(p->c) != CONNECTION_OK ? sql_postgres_broken(p, e) < 0
        : sql_postgres_make_schema(p, schema, version, e) < 0) {
        pq.PQfinish(p->c);
        free(p);
        return -1;
    }
    *ret = p;
    return 0;
}

static void sql_postgres_pg_close(void *db)
{
    struct pg *p = db;

    pq.PQfinish(p->c);
    free(p);
}

static bool sql_postgres_lost(struct pg *p)
{
    return pq.PQstatus(p->c) != CONNECTION_OK;
}

/* Connects again; false if that did not help this time. */
static bool sql_postgres_connect_again(struct pg *p)
{
    pq.PQreset(p->c);
    p->n_prepared = 0;
    p->listens = false;
    return !sql_postgres_lost(p);
}

static void sql_postgres_name_of(const char *text, char out[32])
{
    snprintf(out, 32, "s%p", (const void *)text);
}

/* 0 once it is prepared, else -1 and the failure, which may be NULL. */
static int sql_postgres_prepare(struct pg *p, const char *text, PGresult **ret)
{
    char name[32], *spelled;

    for (int i = 0; i < p->n_prepared; i++)
        if (p->prepared[i] == text)
            return 0;
    sql_postgres_name_of(text, name);
    spelled = sql_spell(&sql_postgres, text);
    *ret = pq.PQprepare(p->c, name, spelled, 0, NULL);
    free(spelled);
    if (!sql_postgres_ended_well(*ret))
        return -1;
    pq.PQclear(*ret);
    if (p->n_prepared < PREPARED)
        p->prepared[p->n_prepared++] = text;
    return 0;
}

/* Runs a prepared statement with its values; the caller clears the result. */
static PGresult *sql_postgres_execute(struct pg *p, const char *text, const struct sql_value *v, int n)
{
    char numbers[SQL_PARAMS][32], name[32];
    const char *values[SQL_PARAMS];

    for (int i = 0; i < n; i++) {
        if (v[i].type == 'i')
            snprintf(numbers[i], sizeof *numbers, "%lld", (long long)v[i].i);
        else if (v[i].type == 'd')
            snprintf(numbers[i], sizeof *numbers, "%.17g", v[i].d);
        values[i] = v[i].type == 't' ? v[i].text : numbers[i];
    }
    sql_postgres_name_of(text, name);
    return pq.PQexecPrepared(p->c, name, n, values, NULL, NULL, 0);
}

/* Copies all rows; sql_rows_free frees them. */
static void sql_postgres_take_rows(const PGresult *r, struct sql_rows *ret)
{
    ret->n = pq.PQntuples(r);
    ret->columns = pq.PQnfields(r);
    if (ret->n == 0)
        return; /* nothing that somebody would have to free */
    ret->cell = xcalloc((size_t)ret->n * (size_t)ret->columns + 1, sizeof *ret->cell);
    for (int i = 0; i < ret->n * ret->columns; i++)
        ret->cell[i] = xstrndup(pq.PQgetvalue(r, i / ret->columns, i % ret->columns),
                                (size_t)pq.PQgetlength(r, i / ret->columns, i % ret->columns));
}

static bool sql_postgres_state_begins(const PGresult *r, const char *with)
{
    const char *state = r ? pq.PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;

    return state && !strncmp(state, with, strlen(with));
}

/* The connection ended. libpq may not have seen that yet: the server said why (57P01 to 57P03), or a write
 * failed, which is an error that no server has given a number. */
static bool sql_postgres_went_away(struct pg *p, const PGresult *r)
{
    return sql_postgres_lost(p) || !r || sql_postgres_state_begins(r, "57P") ||
           !pq.PQresultErrorField(r, PG_DIAG_SQLSTATE);
}

/* Two writers that met (a deadlock, a serialisation failure): the loser runs again. */
static bool sql_postgres_met_another(const PGresult *r)
{
    return sql_postgres_state_begins(r, "40");
}

/* Runs a statement and connects again where the server went away. Rows returned or changed; -1 with e. */
static int64_t sql_postgres_pg_run(void *db, const char *text, const struct sql_value *v, int n, struct sql_rows *ret,
                                   struct err *e)
{
    struct pg *p = db;
    double until = now_s() + AGAIN_S;
    PGresult *r = NULL;
    int64_t got = -1;

    for (bool again = true; again;) {
        pq.PQclear(r);
        r = NULL;
        if (sql_postgres_prepare(p, text, &r) == 0)
            r = sql_postgres_execute(p, text, v, n);
        again = !sql_postgres_ended_well(r) && (sql_postgres_went_away(p, r) || sql_postgres_met_another(r)) &&
            now_s() < until && !stop_requested();
        if (again && sql_postgres_went_away(p, r) && !sql_postgres_connect_again(p))
            nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    }
    if (!sql_postgres_ended_well(r)) {
        sql_postgres_broken(p, e);
    } else {
        sql_postgres_take_rows(r, ret);
        got = pq.PQresultStatus(r) == PGRES_TUPLES_OK ? ret->n
                                                      : strtoll(pq.PQcmdTuples((PGresult *)r), NULL, 10);
    }
    pq.PQclear(r);
    return got;
}

/* A hint: who is not told looks again after WAIT_SLICE_S. It holds a lock of all notifiers until its commit is done, so
 * its commit does not wait for the disk. */
static int sql_postgres_pg_notify(void *db, struct err *e)
{
    sql_postgres_simple(db, "BEGIN; SET LOCAL synchronous_commit = off; NOTIFY " CHANNEL "; COMMIT", NULL);
    return 0;
}

/* Takes what came; how many. */
static int sql_postgres_take_notifications(struct pg *p)
{
    PGnotify *note;
    int n = 0;

    pq.PQconsumeInput(p->c);
    for (; (note = pq.PQnotifies(p->c)); n++)
        pq.PQfreemem(note);
    return n;
}

/* Waits until another client notifies, or wait_s seconds. */
static void sql_postgres_pg_wait(void *db, double wait_s)
{
    struct pg *p = db;
    struct pollfd f = {.events = POLLIN};

    if (wait_s > WAIT_SLICE_S)
        wait_s = WAIT_SLICE_S;
    if (!p->listens) {
        p->listens = sql_postgres_simple(p, "LISTEN " CHANNEL, NULL) == 0;
        wait_s = 0; /* what came before it was not heard: look once more */
    }
    f.fd = pq.PQsocket(p->c);
    if (sql_postgres_take_notifications(p) > 0)
        return;
    if (poll(&f, f.fd >= 0, (int)(wait_s * 1000) + 1) > 0)
        sql_postgres_take_notifications(p);
}

const struct sql_driver sql_postgres = {
    .now = "extract(epoch from clock_timestamp())::float8",
    .id = "BIGSERIAL PRIMARY KEY",
    .skip = "FOR UPDATE SKIP LOCKED",
    .fill = "WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02)",
    .most = "greatest",
    .open = sql_postgres_pg_open,
    .close = sql_postgres_pg_close,
    .run = sql_postgres_pg_run,
    .notify = sql_postgres_pg_notify,
    .wait = sql_postgres_pg_wait,
};
