/* endpoint.h - OpenAI's endpoints over a model folder: routes for an HTTP server (serve/http.h). */
#ifndef MC_CHAT_ENDPOINT_H
#define MC_CHAT_ENDPOINT_H

#include "base/buf.h"
#include "base/err.h"
#include "serve/http.h"

struct endpoint;

struct endpoint_config {
    const char *dir;    /* the model folder: weights and tokenizer */
    const char *name;   /* as clients call it; NULL: the folder's name */
    const char *device; /* "cpu", "cuda", "cuda:N" */
    const char *dtype;  /* on a device: "bf16" or "fp32" */
    int max_len;        /* tokens of prompt and answer; 0: 8192, or what the model has */
    int max_batch;      /* samples drawn at a time; 0: 16 */
};

int endpoint_open(const struct endpoint_config *c, struct endpoint **ret, struct err *e);
const char *endpoint_name(const struct endpoint *p);
/* Ends the samples that are drawn: calls that wait are answered. Before the HTTP server ends. */
void endpoint_stop(struct endpoint *p);
void endpoint_close(struct endpoint *p); /* after it; NULL is fine */

const struct http_route *endpoint_routes(void); /* their ctx is the endpoint */
void endpoint_metrics(void *endpoint, struct buf *out); /* Prometheus text */

#endif
