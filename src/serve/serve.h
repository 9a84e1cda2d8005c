/* serve.h - the judge's HTTP interface over a queue: puts jobs, parks who waits, tells what happens. It judges
 * nothing. */
#ifndef MC_SERVE_SERVE_H
#define MC_SERVE_SERVE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "objective/reward.h"
#include "serve/http.h"

struct serve;

struct serve_config {
    const char *queue;   /* url of the queue */
    const char *address; /* "127.0.0.1" */
    int port;            /* 0: any */
    int threads;
    const char *tokens;  /* a file of lines "TOKEN OWNER"; NULL: everybody may call, from this machine alone */
    const char *host;    /* names that callers without a token may call it by, commas between; NULL: none */
    double wait_s;       /* longest a call is parked; then it is told to come again */
    double keep_s;       /* how long results are kept */
    int queue_max;       /* jobs that wait or run, of all owners; beyond it 429 */
    int owner_max;       /* of one owner; 0: no limit of its own */
    const char *backend; /* of requests that name none */
    bool own_workers;    /* workers for that backend are started beside the server, and may not be there yet */
    struct reward_params reward; /* likewise; zeros: the judge's own */
    bool kernelgym;      /* answers KernelGYM's endpoints too */
    int (*check_options)(const json_t *options, struct err *e); /* of a request, as workers read them; NULL: not here */
    /* Another part's routes on the same server, its lines of /metrics, and its end, before calls that wait are sent
     * away. NULL: none. */
    const struct http_route *more;
    void *more_ctx;
    void (*more_metrics)(void *ctx, struct buf *out);
    void (*more_stop)(void *ctx);
};

int serve_start(const struct serve_config *c, struct serve **ret, struct err *e);
int serve_port(const struct serve *s);
void serve_stop(struct serve *s); /* NULL is fine */

#endif
