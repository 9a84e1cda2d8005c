/* judge_feed.c - sends candidates through verdict workers and writes each verdict as it comes: the C half of
 * lab/judge_public.py.
 *
 *   judge_feed REQUESTS.jsonl RESULTS.jsonl SECONDS WORKERS MUSACODER [OPTION of eval --worker...]
 *
 * A request is {"id","task_name","task_code","candidate","options"}; a result {"id","done_s","verdict"}, done_s
 * counted from the first submission of this run. Ids that RESULTS holds already are left out, so a run that SECONDS
 * cut short goes on where it stopped. All are submitted at once: workers never wait for us. Exit code 0: all are
 * there, 3: time is up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "verdicts/verdict_service.h"

struct feed {
    json_t *requests; /* array */
    json_t *have;     /* {"id": true} */
    struct verdict_batch **open;
    struct verdict_service *service;
    const char *results;
    double start;
    size_t left;
};

static int take_request(json_t *v, size_t line, void *ctx, struct err *e)
{
    (void)line, (void)e;
    json_array_append(((struct feed *)ctx)->requests, v);
    return 0;
}

static int take_result(json_t *v, size_t line, void *ctx, struct err *e)
{
    (void)line, (void)e;
    json_object_set_new(((struct feed *)ctx)->have, json_str(v, "id", ""), json_true());
    return 0;
}

static int submit(struct feed *f, struct err *e)
{
    json_t *r;
    size_t i;

    json_array_foreach(f->requests, i, r) {
        struct verdict_request v = {.task_code = json_str(r, "task_code", ""),
                                    .task_name = json_str(r, "task_name", "task"),
                                    .candidate = json_str(r, "candidate", ""),
                                    .options = json_object_get(r, "options")};

        if (json_object_get(f->have, json_str(r, "id", "")))
            continue;
        if (verdict_batch_submit(f->service, &v, 1, &f->open[i], e) < 0)
            return -1;
        f->left++;
    }
    return 0;
}

static int collect(struct feed *f, size_t i, struct err *e)
{
    struct verdict_batch *b = f->open[i];
    json_t *all, *row;
    int rc;

    f->open[i] = NULL;
    if (verdict_batch_wait(f->service, b, NULL, NULL, &all, e) < 0)
        return -1;
    row = json_pack("{s:s,s:f,s:O}", "id", json_str(json_array_get(f->requests, i), "id", ""), "done_s",
                    now_s() - f->start, "verdict", json_array_get(all, 0));
    rc = jsonl_append(f->results, row, e);
    json_decref(row);
    json_decref(all);
    f->left--;
    return rc;
}

static int run(struct feed *f, double seconds, struct err *e)
{
    size_t n = json_array_size(f->requests);

    while (f->left && now_s() - f->start < seconds && !stop_requested()) {
        bool any = false;

        for (size_t i = 0; i < n; i++) {
            int done = f->open[i] ? verdict_batch_done(f->service, f->open[i], e) : 0;

            if (done < 0 || (done && collect(f, i, e) < 0))
                return -1;
            any |= done > 0;
        }
        if (!any)
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return f->left ? 3 : 0;
}

int main(int argc, char **argv)
{
    struct feed f = {.requests = json_array(), .have = json_object()};
    struct verdict_config c = {.workers = argc > 4 ? atoi(argv[4]) : 1};
    struct err e = ERR_INIT;
    char **worker;
    int rc = -1;

    if (argc < 6) {
        fprintf(stderr, "judge_feed: see lab/judge_public.py\n");
        return 2;
    }
    worker = xcalloc((size_t)argc, sizeof *worker);
    worker[0] = argv[5], worker[1] = "eval", worker[2] = "--worker";
    memcpy(worker + 3, argv + 6, (size_t)(argc - 6) * sizeof *worker);
    c.worker_argv = worker;
    f.results = argv[2];
    stop_install();
    if (jsonl_each(argv[1], take_request, &f, &e) == 0 &&
        (!file_exists(f.results) || jsonl_each(f.results, take_result, &f, &e) == 0)) {
        f.open = xcalloc(json_array_size(f.requests) + 1, sizeof *f.open);
        f.start = now_s();
        if (verdict_service_start(&c, &f.service, &e) == 0 && submit(&f, &e) == 0)
            rc = run(&f, atof(argv[3]), &e);
    }
    if (rc < 0)
        fprintf(stderr, "judge_feed: %s\n", e.msg);
    for (size_t i = 0; f.open && i < json_array_size(f.requests); i++)
        if (f.open[i])
            verdict_batch_cancel(f.service, f.open[i]);
    verdict_service_stop(f.service);
    json_decref(f.requests);
    json_decref(f.have);
    free(f.open);
    free(worker);
    return rc < 0 ? 1 : rc;
}
