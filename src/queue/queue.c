/* queue.c - see queue.h. Every change is one statement, the same on SQLite and PostgreSQL (sql.h).
 *
 * Turns of owners: a job's rank is one more than the largest of its owner's waiting jobs, or the smallest of
 * all that wait in its lane, whichever is larger; the smallest rank goes first. So a thousand jobs of one
 * owner have a thousand ranks, and a newcomer's first job stands beside the first of them (start-time fair
 * queueing, Goyal 1996). */
#include "queue/queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "queue/sql.h"

#define REAP_S 0.5    /* how often a claim looks for expired leases */
#define OVERLAP_S 0.25 /* of queue_ended: how long a commit may take */
#define TICK_S 0.002   /* the clock's, in which several jobs end, and more than a printed time is off */

/* When a job ends: now, and later than all that ended before it, as clocks step back and cursors do not. */
#define LATER "{most}({now}, (SELECT COALESCE(max(ended), 0) FROM job WHERE state > 1) + 0.0001)"

static const char schema[] =
    "CREATE TABLE job(id {id}, key TEXT UNIQUE NOT NULL, lane TEXT NOT NULL, owner TEXT NOT NULL,"
    " priority INTEGER NOT NULL, rank BIGINT NOT NULL, payload TEXT NOT NULL, state INTEGER NOT NULL DEFAULT "
    "0,"
    " attempt INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL, lease BIGINT NOT NULL DEFAULT 0, worker "
    "TEXT,"
    " expires DOUBLE PRECISION NOT NULL DEFAULT 0, made DOUBLE PRECISION NOT NULL,"
    " ended DOUBLE PRECISION NOT NULL DEFAULT 0, cancel INTEGER NOT NULL DEFAULT 0, result TEXT) {fill};"
    "CREATE INDEX job_next ON job(lane, priority DESC, rank, id, made, state) WHERE state = 0;"
    "CREATE INDEX job_owner ON job(owner, lane, rank) WHERE state = 0;"
    "CREATE INDEX job_leased ON job(expires) WHERE state = 1;"
    "CREATE INDEX job_ended ON job(ended, id, state, lane) WHERE state > 1;"
    "CREATE TABLE worker(name TEXT PRIMARY KEY, info TEXT NOT NULL, expires DOUBLE PRECISION NOT NULL,"
    " drain INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE alias(name TEXT PRIMARY KEY, id BIGINT NOT NULL);"
    "CREATE TABLE setting(name TEXT PRIMARY KEY, value TEXT NOT NULL)";

struct queue {
    struct sql *db;
    double reaped; /* when this connection last looked for expired leases */
    bool busy;     /* the last claim found a job at once */
};

int queue_open(const char *url, struct queue **ret, struct err *e)
{
    struct sql *db;

    if (sql_open(url, schema, QUEUE_VERSION, &db, e) < 0)
        return -1;
    *ret = xcalloc(1, sizeof **ret);
    (*ret)->db = db;
    return 0;
}

void queue_close(struct queue *q)
{
    if (q)
        sql_close(q->db);
    free(q);
}

static const char *queue_or_empty(const char *s)
{
    return s ? s : "";
}

int queue_find(struct queue *q, const char *key, int64_t *ret_id, struct err *e)
{
    struct sql_rows r;
    int64_t n = sql_run(q->db, &r, e, "SELECT id FROM job WHERE key = $1", "t", key);

    if (n < 0)
        return -1;
    if (n > 0)
        *ret_id = sql_int(&r, 0, 0);
    sql_rows_free(&r);
    return n > 0;
}

int queue_put(struct queue *q, const struct queue_item *it, int64_t *ret_id, struct err *e)
{
    static const char text[] =
        "INSERT INTO job(key, lane, owner, priority, payload, attempts, made, rank)"
        " VALUES($1, $2, $3, $4, $5, $6, {now}, {most}("
        "coalesce((SELECT max(rank) + 1 FROM job WHERE state = 0 AND owner = $3 AND lane = $2), 1),"
        " coalesce((SELECT rank FROM job WHERE state = 0 AND lane = $2 AND priority = $4 ORDER BY rank"
        " LIMIT 1), 1)))"
        " ON CONFLICT(key) DO NOTHING RETURNING id";
    struct sql_rows r;
    int found;
    int64_t n = sql_run(q->db, &r, e, text, "tttiti", it->key, queue_or_empty(it->lane), queue_or_empty(it->owner),
                        (int64_t)it->priority, it->payload,
                        (int64_t)(it->attempts > 0 ? it->attempts : QUEUE_ATTEMPTS));

    if (n < 0)
        return -1;
    if (n > 0) {
        *ret_id = sql_int(&r, 0, 0);
        sql_rows_free(&r);
        return sql_notify(q->db, e) < 0 ? -1 : 1;
    }
    found = queue_find(q, it->key, ret_id, e);
    return found == 0  ? queue_put(q, it, ret_id, e)
           : found < 0 ? -1
                       : 0; /* forgotten in between: put it again */
}

/* What becomes of a job whose attempt ended without a result: X is the reason. */
#define ATTEMPT_OVER(X)                                                                                      \
    " state = CASE WHEN cancel = 1 THEN 4 WHEN attempt >= attempts THEN 3 ELSE 0 END,"                       \
    " result = " X ", ended = CASE WHEN cancel = 1 OR attempt >= attempts THEN " LATER " ELSE 0 END"

/* Gives jobs back whose lease has expired, or ends them after their last attempt. Once a REAP_S. */
static int queue_reap(struct queue *q, struct err *e)
{
    static const char any[] = "SELECT 1 FROM job WHERE state = 1 AND expires < {now} LIMIT 1";
    static const char text[] = "UPDATE job SET" ATTEMPT_OVER(
        "'the worker that judged it died or fell silent, each time'") " WHERE state = 1 AND expires < {now}";
    struct sql_rows r;
    int64_t n;

    if (now_s() < q->reaped + REAP_S)
        return 0;
    q->reaped = now_s();
    if ((n = sql_run(q->db, &r, e, any, "")) <= 0)
        return (int)n;
    sql_rows_free(&r);
    return sql_run(q->db, NULL, e, text, "") < 0 || sql_notify(q->db, e) < 0 ? -1 : 0;
}

/* Claims the next job of a lane. 1: *ret is it; 0: none waits; -1 with e. */
static int queue_claim_once(struct queue *q, const char *lane, const char *worker, double lease_s,
                            struct queue_job *ret, struct err *e)
{
    static const char text[] =
        "UPDATE job SET state = 1, attempt = attempt + 1, lease = lease + 1, worker = $1, expires = {now} + "
        "$2 WHERE id ="
        " (SELECT id FROM job WHERE lane = $3 AND state = 0 ORDER BY priority DESC, rank, id LIMIT 1 {skip})"
        " RETURNING id, key, payload, attempt, lease";
    struct sql_rows r;
    int64_t n = sql_run(q->db, &r, e, text, "tdt", worker, lease_s, lane);

    if (n <= 0)
        return (int)n;
    *ret = (struct queue_job){.id = sql_int(&r, 0, 0),
                              .key = xstrdup(sql_cell(&r, 0, 1)),
                              .payload = xstrdup(sql_cell(&r, 0, 2)),
                              .attempt = (int)sql_int(&r, 0, 3),
                              .lease = sql_int(&r, 0, 4)};
    sql_rows_free(&r);
    return 1;
}

/* Waiting workers look before they ask for the write lock, so that an idle pool does not keep others from it. Who just
 * had a job asks at once. */
static int queue_has_work(struct queue *q, const char *lane, struct err *e)
{
    struct sql_rows r;
    int64_t n = sql_run(q->db, &r, e, "SELECT 1 FROM job WHERE lane = $1 AND state = 0 ORDER BY priority DESC, rank, "
                                      "id LIMIT 1", "t",
                        lane); /* in that order: no plan but the index */

    if (n > 0)
        sql_rows_free(&r);
    return (int)n;
}

int queue_claim(struct queue *q, const char *lane, const char *worker, double lease_s, double wait_s,
                struct queue_job *ret, struct err *e)
{
    double deadline = now_s() + wait_s;

    for (lane = queue_or_empty(lane);;) {
        int got = queue_reap(q, e) < 0 ? -1 : q->busy ? 1 : queue_has_work(q, lane, e);
        double left = deadline - now_s();
        if (got == 1)
            got = queue_claim_once(q, lane, worker, lease_s, ret, e);
        q->busy = got == 1;
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
    return (int)sql_run(
        q->db, NULL, e,
        "UPDATE job SET expires = {now} + $1 WHERE id = $2 AND lease = $3 AND state = 1 AND cancel = 0",
        "dii", lease_s, j->id, j->lease);
}

/* Did this very lease end it before? A statement whose answer was lost on the way is run again. */
static int queue_finished_by(struct queue *q, const struct queue_job *j, struct err *e)
{
    struct sql_rows r;
    int64_t n = sql_run(q->db, &r, e, "SELECT 1 FROM job WHERE id = $1 AND lease = $2 AND state = 2", "ii",
                        j->id, j->lease);

    if (n > 0)
        sql_rows_free(&r);
    return (int)n;
}

#define QUEUE_SEAL ",\"seal\":\""
#define QUEUE_SEAL_N (sizeof QUEUE_SEAL - 1 + 64 + 2)

/* ret: SHA-256 in hex of the key and the result. */
static void queue_seal_of(const char *key, const char *result, size_t n, char ret[65])
{
    struct sha256 h;

    sha256_start(&h);
    sha256_adds(&h, key);
    sha256_add(&h, result, n);
    sha256_end(&h, ret);
}

/* The object with a last member that is a hash of the key and of what stands before it; owned. */
static char *queue_sealed(const char *key, const char *result)
{
    size_t n = strlen(result);
    char hex[65];

    if (n < 3 || result[n - 1] != '}')
        return xstrdup(result);
    queue_seal_of(key, result, n - 1, hex);
    return xasprintf("%.*s" QUEUE_SEAL "%s\"}", (int)(n - 1), result, hex);
}

/* What was sealed, owned; as it is where an older version left no seal; NULL: it is not what was written. */
static char *queue_unsealed(const char *key, const char *sealed)
{
    size_t n = strlen(sealed);
    char hex[65];

    if (n <= QUEUE_SEAL_N || strncmp(sealed + n - QUEUE_SEAL_N, QUEUE_SEAL, sizeof QUEUE_SEAL - 1))
        return xstrdup(sealed);
    n -= QUEUE_SEAL_N;
    queue_seal_of(key, sealed, n, hex);
    return strncmp(sealed + n + sizeof QUEUE_SEAL - 1, hex, 64) ? NULL : xasprintf("%.*s}", (int)n, sealed);
}

int queue_finish(struct queue *q, const struct queue_job *j, const char *result, struct err *e)
{
    static const char text[] = "UPDATE job SET state = 2, result = $1, payload = CASE WHEN lane LIKE "
                               "'build:%' THEN '' ELSE payload END, ended = " LATER " WHERE id "
                               "= $2 AND lease = $3 AND state = 1";
    char *sealed = queue_sealed(j->key, result);
    int64_t n = sql_run(q->db, NULL, e, text, "tii", sealed, j->id, j->lease);

    free(sealed);
    if (n == 0)
        return queue_finished_by(q, j, e);
    return n < 0 || sql_notify(q->db, e) < 0 ? -1 : 1;
}

int queue_fail(struct queue *q, const struct queue_job *j, const char *reason, struct err *e)
{
    static const char text[] =
        "UPDATE job SET" ATTEMPT_OVER("$1") " WHERE id = $2 AND lease = $3 AND state = 1";

    return sql_run(q->db, NULL, e, text, "tii", reason, j->id, j->lease) < 0 || sql_notify(q->db, e) < 0 ? -1
                                                                                                         : 0;
}

int queue_give_back(struct queue *q, const struct queue_job *j, struct err *e)
{
    static const char text[] =
        "UPDATE job SET attempt = attempt - 1, state = CASE WHEN cancel = 1 THEN 4 ELSE 0 END,"
        " ended = CASE WHEN cancel = 1 THEN " LATER " ELSE 0 END WHERE id = $1 AND lease = $2 AND state = 1";

    return sql_run(q->db, NULL, e, text, "ii", j->id, j->lease) < 0 || sql_notify(q->db, e) < 0 ? -1 : 0;
}

int queue_release_worker(struct queue *q, const char *worker, const char *reason, struct err *e)
{
    static const char text[] = "UPDATE job SET" ATTEMPT_OVER("$1") " WHERE state = 1 AND worker = $2";
    int64_t n = sql_run(q->db, NULL, e, text, "tt", reason, worker);

    return n < 0 || (n > 0 && sql_notify(q->db, e) < 0) ? -1 : (int)n;
}

int queue_cancel(struct queue *q, int64_t id, struct err *e)
{
    static const char text[] =
        "UPDATE job SET cancel = 1, state = 4, ended = " LATER " WHERE id = $1 AND state < 2";

    if (sql_run(q->db, NULL, e, text, "i", id) < 0 || sql_notify(q->db, e) < 0)
        return -1;
    return queue_result(q, id, NULL, e);
}

/* What is not what was written is nobody's result: the job waits again; one whose payload is gone has failed. */
static int queue_ask_again(struct queue *q, int64_t id, struct err *e)
{
    static const char text[] =
        "UPDATE job SET attempt = 0, state = CASE WHEN payload = '' THEN 3 ELSE 0 END,"
        " ended = CASE WHEN payload = '' THEN ended ELSE 0 END, result = 'the result was altered in the queue'"
        " WHERE id = $1 AND state = 2";

    log_warn("job %lld's result was altered since it was written; it is asked for again", (long long)id);
    return sql_run(q->db, NULL, e, text, "i", id) < 0 || sql_notify(q->db, e) < 0 ? -1 : QUEUE_WAITING;
}

int queue_result(struct queue *q, int64_t id, char **ret_result, struct err *e)
{
    struct sql_rows r;
    int64_t n = sql_run(q->db, &r, e, "SELECT state, result, key FROM job WHERE id = $1", "i", id);
    char *result = NULL;
    int state;

    if (n < 0)
        return -1;
    if (n == 0)
        return err_set(e, ERR_INPUT, "job queue: job %lld is not there", (long long)id);
    state = (int)sql_int(&r, 0, 0);
    if (state >= QUEUE_DONE && ret_result)
        result = state == QUEUE_DONE ? queue_unsealed(sql_cell(&r, 0, 2), sql_cell(&r, 0, 1))
                                     : xstrdup(sql_cell(&r, 0, 1));
    sql_rows_free(&r);
    if (state == QUEUE_DONE && ret_result && !result)
        return queue_ask_again(q, id, e);
    if (result)
        *ret_result = result;
    return state;
}

/* A column of a job, as text: owned; NULL with *e. */
static char *queue_text_of(struct queue *q, const char *select, int64_t id, struct err *e)
{
    struct sql_rows r;
    int64_t n = sql_run(q->db, &r, e, select, "i", id);
    char *text;

    if (n < 0)
        return NULL;
    if (n == 0) {
        err_set(e, ERR_INPUT, "job queue: job %lld is not there", (long long)id);
        return NULL;
    }
    text = xstrdup(sql_cell(&r, 0, 0));
    sql_rows_free(&r);
    return text;
}

char *queue_owner(struct queue *q, int64_t id, struct err *e)
{
    return queue_text_of(q, "SELECT owner FROM job WHERE id = $1", id, e);
}

char *queue_payload(struct queue *q, int64_t id, struct err *e)
{
    return queue_text_of(q, "SELECT payload FROM job WHERE id = $1", id, e);
}

int queue_ended(struct queue *q, double *cursor, int64_t *ids, int n, struct err *e)
{
    static const char text[] = "SELECT id, ended FROM job WHERE state > 1 AND ended >= CAST($1 AS DOUBLE "
                               "PRECISION) AND lane NOT LIKE 'build:%' ORDER BY ended, id LIMIT $2";
    struct sql_rows r;
    int64_t got = sql_run(q->db, &r, e, text, "di", *cursor, (int64_t)n);

    if (got < 0)
        return -1;
    for (int i = 0; i < r.n; i++)
        ids[i] = sql_int(&r, i, 0);
    if (r.n > 0) {
        double last = strtod(sql_cell(&r, r.n - 1, 1), NULL) - (r.n < n ? OVERLAP_S : TICK_S);
        *cursor = last > *cursor ? last : *cursor;
    }
    sql_rows_free(&r);
    return (int)got;
}

int queue_ended_now(struct queue *q, double *ret_cursor, struct err *e)
{
    struct sql_rows r;

    if (sql_run(q->db, &r, e, "SELECT COALESCE(max(ended), 0) + 0.00005 FROM job WHERE state > 1", "") < 0)
        return -1;
    *ret_cursor = strtod(sql_cell(&r, 0, 0), NULL);
    sql_rows_free(&r);
    return 0;
}

/* A job of the list that GET /v1/jobs shows. New. */
static json_t *queue_job_row(const struct sql_rows *r, int i)
{
    return json_pack("{s:I,s:I,s:s,s:s,s:I,s:I,s:s,s:f}", "id", (json_int_t)sql_int(r, i, 0), "state",
                     (json_int_t)sql_int(r, i, 1), "owner", sql_cell(r, i, 2), "lane", sql_cell(r, i, 3), "priority",
                     (json_int_t)sql_int(r, i, 4), "attempt", (json_int_t)sql_int(r, i, 5), "worker",
                     sql_cell(r, i, 6), "waited_s", strtod(sql_cell(r, i, 7), NULL));
}

json_t *queue_list(struct queue *q, const char *owner, int state, int n, struct err *e)
{
    static const char text[] =
        "SELECT id, state, owner, lane, priority, attempt, worker,"
        " (CASE WHEN state > 1 THEN ended ELSE {now} END) - made FROM job"
        " WHERE (CAST($1 AS INTEGER) = 1 OR owner = $2) AND (CAST($3 AS INTEGER) < 0 OR state = $3)"
        " ORDER BY id DESC LIMIT $4";
    struct sql_rows r;
    json_t *all;

    if (sql_run(q->db, &r, e, text, "itii", (int64_t)!owner, queue_or_empty(owner), (int64_t)state, (int64_t)n) < 0)
        return NULL;
    all = json_array();
    for (int i = 0; i < r.n; i++)
        json_array_append_new(all, queue_job_row(&r, i));
    sql_rows_free(&r);
    return all;
}

void queue_wait_change(struct queue *q, double wait_s)
{
    sql_wait(q->db, wait_s);
}

int queue_forget(struct queue *q, int64_t id, struct err *e)
{
    return sql_run(q->db, NULL, e, "DELETE FROM job WHERE id = $1 AND state > 1", "i", id) < 0 ? -1 : 0;
}

int queue_sweep(struct queue *q, double keep_s, struct err *e)
{
    static const char names[] = "DELETE FROM alias WHERE id NOT IN (SELECT id FROM job)";

    if (sql_run(q->db, NULL, e, names, "") < 0)
        return -1;
    if (sql_run(q->db, NULL, e, "DELETE FROM worker WHERE expires < {now} - 60", "") < 0)
        return -1;
    return (int)sql_run(q->db, NULL, e,
                        "DELETE FROM job WHERE state > 1 AND ended < {now} - CAST($1 AS DOUBLE PRECISION)",
                        "d", keep_s);
}

/* Each statement reads an index alone: jobs are large. */
int queue_stats(struct queue *q, struct queue_stats *ret, struct err *e)
{
    static const char waiting[] = "SELECT coalesce(sum(n), 0), coalesce({now} - min(first), 0)"
                                  " FROM (SELECT lane, count(*) AS n, min(made) AS first FROM job WHERE state = 0"
                                  " AND lane NOT LIKE 'build:%' GROUP BY lane) AS l";
    static const char leased[] = "SELECT count(*) FROM job WHERE state = 1 AND lane NOT LIKE 'build:%'";
    static const char ended[] = "SELECT state, count(*) FROM job WHERE state > 1 AND lane NOT LIKE 'build:%'"
                                " GROUP BY state";
    struct queue_stats s = {0};
    int64_t *const of[] = {[QUEUE_DONE] = &s.done, [QUEUE_FAILED] = &s.failed, [QUEUE_CANCELLED] = &s.cancelled};
    struct sql_rows r;

    if (sql_run(q->db, &r, e, waiting, "") < 0)
        return -1;
    s.waiting = sql_int(&r, 0, 0);
    s.oldest_s = strtod(sql_cell(&r, 0, 1), NULL);
    sql_rows_free(&r);
    if (sql_run(q->db, &r, e, leased, "") < 0)
        return -1;
    s.leased = sql_int(&r, 0, 0);
    sql_rows_free(&r);
    if (sql_run(q->db, &r, e, ended, "") < 0)
        return -1;
    for (int i = 0; i < r.n; i++)
        if (sql_int(&r, i, 0) <= QUEUE_CANCELLED)
            *of[sql_int(&r, i, 0)] = sql_int(&r, i, 1);
    sql_rows_free(&r);
    *ret = s;
    return 0;
}

int64_t queue_owner_load(struct queue *q, const char *owner, struct err *e)
{
    struct sql_rows r;
    int64_t n = sql_run(q->db, &r, e,
                        "SELECT (SELECT count(*) FROM job WHERE state = 0 AND owner = $1) +"
                        " (SELECT count(*) FROM job WHERE state = 1 AND owner = $1)",
                        "t", owner);

    if (n < 0)
        return -1;
    n = sql_int(&r, 0, 0);
    sql_rows_free(&r);
    return n;
}

/* ---- workers and settings ---- */

int queue_worker_announce(struct queue *q, const char *worker, const char *info, double lease_s,
                          struct err *e)
{
    static const char text[] =
        "INSERT INTO worker(name, info, expires) VALUES($1, $2, {now} + $3)"
        " ON CONFLICT(name) DO UPDATE SET info = excluded.info, expires = excluded.expires RETURNING drain";
    struct sql_rows r;
    int drain;

    if (sql_run(q->db, &r, e, text, "ttd", worker, info, lease_s) < 0)
        return -1;
    drain = r.n > 0 && sql_int(&r, 0, 0) != 0;
    sql_rows_free(&r);
    return !drain;
}

int queue_worker_drain(struct queue *q, const char *worker, struct err *e)
{
    return (int)sql_run(q->db, NULL, e, "UPDATE worker SET drain = 1 WHERE name = $1", "t", worker);
}

int queue_worker_gone(struct queue *q, const char *worker, struct err *e)
{
    return sql_run(q->db, NULL, e, "DELETE FROM worker WHERE name = $1", "t", worker) < 0 ? -1 : 0;
}

json_t *queue_workers(struct queue *q, struct err *e)
{
    static const char text[] = "SELECT name, info, drain, (SELECT count(*) FROM job WHERE state = 1 AND "
                               "job.worker = worker.name) FROM worker"
                               " WHERE expires >= {now} ORDER BY name";
    struct sql_rows r;
    json_t *all;

    if (sql_run(q->db, &r, e, text, "") < 0)
        return NULL;
    all = json_array();
    for (int i = 0; i < r.n; i++) {
        const char *info = sql_cell(&r, i, 1);
        json_t *said = json_parse(info, strlen(info), "worker", NULL);
        json_array_append_new(all, json_pack("{s:s,s:o,s:b,s:I}", "name", sql_cell(&r, i, 0), "info",
                                             said ? said : json_null(), "drain", sql_int(&r, i, 2) != 0,
                                             "leased", (json_int_t)sql_int(&r, i, 3)));
    }
    sql_rows_free(&r);
    return all;
}

char *queue_setting(struct queue *q, const char *name, const char *fresh, struct err *e)
{
    struct sql_rows r;
    char *value;

    if (sql_run(q->db, NULL, e,
                "INSERT INTO setting(name, value) VALUES($1, $2) ON CONFLICT(name) DO NOTHING", "tt", name,
                fresh) < 0 ||
        sql_run(q->db, &r, e, "SELECT value FROM setting WHERE name = $1", "t", name) < 0)
        return NULL;
    value = xstrdup(r.n > 0 ? sql_cell(&r, 0, 0) : fresh);
    sql_rows_free(&r);
    return value;
}

int queue_setting_set(struct queue *q, const char *name, const char *value, struct err *e)
{
    static const char text[] =
        "INSERT INTO setting(name, value) VALUES($1, $2) ON CONFLICT(name) DO UPDATE SET value = excluded.value";

    return sql_run(q->db, NULL, e, text, "tt", name, value) < 0 ? -1 : 0;
}

int queue_alias(struct queue *q, const char *name, int64_t id, struct err *e)
{
    static const char text[] =
        "INSERT INTO alias(name, id) VALUES($1, $2) ON CONFLICT(name) DO UPDATE SET id = excluded.id";

    return sql_run(q->db, NULL, e, text, "ti", name, id) < 0 ? -1 : 0;
}

int queue_alias_find(struct queue *q, const char *name, int64_t *ret_id, struct err *e)
{
    struct sql_rows r;
    int64_t n = sql_run(q->db, &r, e, "SELECT id FROM alias WHERE name = $1", "t", name);

    if (n < 0)
        return -1;
    if (n > 0)
        *ret_id = sql_int(&r, 0, 0);
    sql_rows_free(&r);
    return n > 0;
}
