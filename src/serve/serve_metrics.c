/* serve_metrics.c - see serve_metrics.h. Label values are ours or come from a fixed list, so nothing of a
 * candidate's gets here. / */
#include "serve/serve_metrics.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/numbers.h"
#include "queue/queue.h"

static const char *const categories[] = {
    "passed",   "extraction_error", "compile_error", "runtime_error", "correctness_error",
    "cheating", "timeout",          "unsupported",   "infra",         "cancelled",
    "other"};
#define N_CATEGORIES (sizeof categories / sizeof *categories)

static const char *const stages[] = {"extract", "load", "compile", "correctness", "legality", "performance"};
#define N_STAGES (sizeof stages / sizeof *stages)

static const double bounds[] = {0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100}; /* seconds */
#define N_BOUNDS (sizeof bounds / sizeof *bounds)

#define RECENT 512 /* values that quantiles are taken of */
struct histogram {
    uint64_t n[N_BOUNDS + 1], count;
    double sum;
    double recent[RECENT]; /* by turns */
};

#define N_ROUTES 32
struct serve_metrics {
    pthread_mutex_t lock;
    uint64_t verdicts[N_CATEGORIES], cached, refused[600];
    struct histogram stage[N_STAGES];
    struct {
        const char *route;
        uint64_t n;
    } requests[N_ROUTES];
    struct queue_stats queue;
    int workers;
};

struct serve_metrics *metrics_new(void)
{
    struct serve_metrics *m = xcalloc(1, sizeof *m);

    pthread_mutex_init(&m->lock, NULL);
    return m;
}

void metrics_free(struct serve_metrics *m)
{
    if (m)
        pthread_mutex_destroy(&m->lock);
    free(m);
}

/* The table's place of a job's outcome. */
static size_t serve_metrics_category_of(int state, const json_t *v)
{
    const char *status = json_str(v, "status", "infra"), *category = json_str(v, "category", status);

    if (state == QUEUE_CANCELLED)
        category = "cancelled";
    for (size_t i = 0; i < N_CATEGORIES - 1; i++)
        if (!strcmp(categories[i], category))
            return i;
    return N_CATEGORIES - 1;
}

/* Counts a duration in its bucket and among the recent ones. */
static void serve_metrics_observe(struct histogram *h, double s)
{
    size_t i = 0;

    while (i < N_BOUNDS && s > bounds[i])
        i++;
    h->n[i]++;
    h->recent[h->count % RECENT] = s;
    h->count++;
    h->sum += s;
}

void metrics_verdict(struct serve_metrics *m, int state, const json_t *v)
{
    const json_t *ms = json_object_get(v, "stage_ms");

    pthread_mutex_lock(&m->lock);
    m->verdicts[serve_metrics_category_of(state, v)]++;
    m->cached += json_flag(v, "cached", false);
    for (size_t i = 0; i < N_STAGES; i++)
        if (json_object_get(ms, stages[i]))
            serve_metrics_observe(&m->stage[i], json_f64(ms, stages[i], 0) / 1e3);
    pthread_mutex_unlock(&m->lock);
}

void metrics_request(struct serve_metrics *m, const char *route)
{
    int i = 0;

    pthread_mutex_lock(&m->lock);
    while (i < N_ROUTES - 1 && m->requests[i].route && strcmp(m->requests[i].route, route))
        i++;
    m->requests[i].route = route;
    m->requests[i].n++;
    pthread_mutex_unlock(&m->lock);
}

void metrics_refused(struct serve_metrics *m, int status)
{
    pthread_mutex_lock(&m->lock);
    m->refused[status % 600]++;
    pthread_mutex_unlock(&m->lock);
}

void metrics_queue(struct serve_metrics *m, const struct queue_stats *st, int workers)
{
    pthread_mutex_lock(&m->lock);
    m->queue = *st;
    m->workers = workers;
    pthread_mutex_unlock(&m->lock);
}

static void serve_metrics_head(struct buf *b, const char *name, const char *type, const char *help)
{
    buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void serve_metrics_gauge(struct buf *b, const char *name, const char *help, double v)
{
    serve_metrics_head(b, name, "gauge", help);
    buf_addf(b, "%s %.17g\n", name, v);
}

/* Appends a stage's histogram of seconds in Prometheus' text form. */
static void serve_metrics_print_stage(struct buf *b, const char *stage, const struct histogram *h)
{
    uint64_t below = 0;

    for (size_t i = 0; i <= N_BOUNDS; i++) {
        char le[32] = "+Inf";
        if (i < N_BOUNDS)
            snprintf(le, sizeof le, "%g", bounds[i]);
        below += h->n[i];
        buf_addf(b, "musacoder_stage_seconds_bucket{stage=\"%s\",le=\"%s\"} %llu\n", stage, le,
                 (unsigned long long)below);
    }
    buf_addf(b, "musacoder_stage_seconds_sum{stage=\"%s\"} %.9g\n", stage, h->sum);
    buf_addf(b, "musacoder_stage_seconds_count{stage=\"%s\"} %llu\n", stage, (unsigned long long)h->count);
}

void metrics_print(struct serve_metrics *m, struct buf *b)
{
    pthread_mutex_lock(&m->lock);
    serve_metrics_head(b, "musacoder_verdicts_total", "counter", "Jobs that ended, by category.");
    for (size_t i = 0; i < N_CATEGORIES; i++)
        buf_addf(b, "musacoder_verdicts_total{category=\"%s\"} %llu\n", categories[i],
                 (unsigned long long)m->verdicts[i]);
    serve_metrics_head(b, "musacoder_verdicts_cached_total", "counter", "Verdicts that came from the cache.");
    buf_addf(b, "musacoder_verdicts_cached_total %llu\n", (unsigned long long)m->cached);
    serve_metrics_head(b, "musacoder_requests_total", "counter", "Requests, by route.");
    for (int i = 0; i < N_ROUTES && m->requests[i].route; i++)
        buf_addf(b, "musacoder_requests_total{route=\"%s\"} %llu\n", m->requests[i].route,
                 (unsigned long long)m->requests[i].n);
    serve_metrics_head(b, "musacoder_refused_total", "counter", "Requests that were refused, by status.");
    for (int i = 0; i < 600; i++)
        if (m->refused[i])
            buf_addf(b, "musacoder_refused_total{status=\"%d\"} %llu\n", i, (unsigned long long)m->refused[i]);
    serve_metrics_head(b, "musacoder_stage_seconds", "histogram", "How long a stage of a candidate took.");
    for (size_t i = 0; i < N_STAGES; i++)
        serve_metrics_print_stage(b, stages[i], &m->stage[i]);
    serve_metrics_gauge(b, "musacoder_queue_waiting", "Jobs that wait.", (double)m->queue.waiting);
    serve_metrics_gauge(b, "musacoder_queue_leased", "Jobs that run.", (double)m->queue.leased);
    serve_metrics_gauge(b, "musacoder_queue_oldest_seconds", "How long the first of the waiting has waited.",
                        m->queue.oldest_s);
    serve_metrics_gauge(b, "musacoder_workers", "Workers that are there.", m->workers);
    pthread_mutex_unlock(&m->lock);
}

/* The value that a share of the latest observations does not exceed (nearest rank); 0: there are none. */
static double serve_metrics_quantile(const struct histogram *h, double share)
{
    size_t n = h->count < RECENT ? (size_t)h->count : RECENT, rank = (size_t)ceil(share * (double)n);
    double sorted[RECENT];

    memcpy(sorted, h->recent, n * sizeof *sorted);
    numbers_sort(sorted, n);
    return n ? sorted[rank ? rank - 1 : 0] : 0;
}

json_t *metrics_json(struct serve_metrics *m)
{
    json_t *v = json_object(), *by = json_object(), *st = json_object();

    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < N_CATEGORIES; i++)
        json_object_set_new(by, categories[i], json_integer((json_int_t)m->verdicts[i]));
    for (size_t i = 0; i < N_STAGES; i++)
        json_object_set_new(st, stages[i],
                            json_pack("{s:I,s:o,s:o}", "count", (json_int_t)m->stage[i].count, "p50_s",
                                      json_num(serve_metrics_quantile(&m->stage[i], 0.5)), "p95_s",
                                      json_num(serve_metrics_quantile(&m->stage[i], 0.95))));
    json_object_set_new(v, "verdicts", by);
    json_object_set_new(v, "stages", st);
    json_object_set_new(v, "cached", json_integer((json_int_t)m->cached));
    json_object_set_new(v, "queue",
                        json_pack("{s:I,s:I,s:I,s:I,s:I,s:f}", "waiting", (json_int_t)m->queue.waiting, "leased",
                                  (json_int_t)m->queue.leased, "done", (json_int_t)m->queue.done, "failed",
                                  (json_int_t)m->queue.failed, "cancelled", (json_int_t)m->queue.cancelled,
                                  "oldest_s", m->queue.oldest_s));
    json_object_set_new(v, "workers", json_integer(m->workers));
    pthread_mutex_unlock(&m->lock);
    return v;
}
