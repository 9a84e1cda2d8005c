/* graph.c - graphs of the runtime: what a stream is asked for while it captures is kept as the messages that it would
 * have sent, and sent when the graph is launched, in the order in which it came. So a graph's kernels are launches of
 * the log like any others. Memory that is given back while a stream captures stays: the graph still uses it. */
#include "graph.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "exec/client.h"

enum { MAX_STREAMS = 64, MAX_EVENTS = 256, CAPTURES_NOT = 900 };

struct node {
    unsigned op;
    size_t n_tail;
    union wire_body body;
    uint8_t tail[];
};

struct front_graph {
    struct node **v;
    size_t n, cap;
};

/* One capture at a time; the streams that belong to it, and events that were recorded on them. */
static struct front_graph *recording;
static uint32_t streams[MAX_STREAMS], events[MAX_EVENTS];
static int n_streams, n_events;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool among(const uint32_t *list, int n, uint32_t x)
{
    for (int i = 0; i < n; i++)
        if (list[i] == x)
            return true;
    return false;
}

static void join(uint32_t *list, int *n, int max, uint32_t x)
{
    if (!among(list, *n, x) && *n < max)
        list[(*n)++] = x;
}

static int append(struct front_graph *g, unsigned op, const void *body, size_t n_body, const void *tail, size_t n_tail)
{
    struct node *node = calloc(1, sizeof *node + n_tail), **v = g->v;

    if (g->n == g->cap)
        v = realloc(g->v, (g->cap = g->cap ? 2 * g->cap : 16) * sizeof *v);
    if (!node || !v)
        return WIRE_OUT_OF_MEMORY;
    g->v = v;
    node->op = op, node->n_tail = n_tail;
    memcpy(&node->body, body, n_body);
    if (n_tail)
        memcpy(node->tail, tail, n_tail);
    g->v[g->n++] = node;
    return WIRE_OK;
}

/* Of a message on a stream that captures. */
static int take(unsigned op, const void *body, size_t n_body, const void *tail, size_t n_tail)
{
    switch (op) {
    case WIRE_FREE: return WIRE_OK;
    case WIRE_EVENT_RECORD:
        join(events, &n_events, MAX_EVENTS, ((const struct wire_event *)body)->event);
        return WIRE_OK;
    case WIRE_EVENT_WAIT: return WIRE_OK;
    case WIRE_STREAM_SYNC: return CAPTURES_NOT;
    case WIRE_UP:
        front_lack(FRONT_LACK_GRAPHS); /* it would copy from the host's memory whenever it is launched */
        return CAPTURES_NOT;
    default: return append(recording, op, body, n_body, tail, n_tail);
    }
}

static bool record(unsigned op, const void *body, size_t n_body, const void *tail, size_t n_tail, int *ret_code)
{
    const uint32_t *at = client_stream_of(op, (void *)(uintptr_t)body);
    bool taken = false;

    pthread_mutex_lock(&lock);
    if (recording && at) {
        if (op == WIRE_EVENT_WAIT && among(events, n_events, ((const struct wire_event *)body)->event))
            join(streams, &n_streams, MAX_STREAMS, *at); /* a fork: that stream captures too */
        taken = among(streams, n_streams, *at) || op == WIRE_FREE;
        if (taken)
            *ret_code = take(op, body, n_body, tail, n_tail);
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

static uint32_t number(const void *stream)
{
    return (uint32_t)(uintptr_t)stream;
}

int front_capture_begin(void *stream)
{
    int code = WIRE_OK;

    pthread_mutex_lock(&lock);
    if (recording || !(recording = calloc(1, sizeof *recording)))
        code = CAPTURES_NOT;
    else
        streams[0] = number(stream), n_streams = 1, n_events = 0;
    pthread_mutex_unlock(&lock);
    if (!code)
        client_record(front_client(), record);
    return front_fail(code);
}

int front_capture_end(struct front_graph **ret)
{
    pthread_mutex_lock(&lock);
    *ret = recording;
    recording = NULL;
    pthread_mutex_unlock(&lock);
    client_record(front_client(), NULL);
    return *ret ? WIRE_OK : front_fail(WIRE_INVALID);
}

bool front_captures(const void *stream)
{
    bool yes;

    pthread_mutex_lock(&lock);
    yes = recording && among(streams, n_streams, number(stream));
    pthread_mutex_unlock(&lock);
    return yes;
}

bool front_capturing(void)
{
    return __atomic_load_n(&recording, __ATOMIC_RELAXED) != NULL;
}

struct front_graph *front_graph_new(void)
{
    return calloc(1, sizeof(struct front_graph));
}

struct front_graph *front_graph_copy(const struct front_graph *g)
{
    struct front_graph *to = front_graph_new();

    for (size_t i = 0; to && i < g->n; i++)
        append(to, g->v[i]->op, &g->v[i]->body, wire_size(g->v[i]->op), g->v[i]->tail, g->v[i]->n_tail);
    return to;
}

void front_graph_free(struct front_graph *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->n; i++)
        free(g->v[i]);
    free(g->v);
    free(g);
}

/* A launch becomes a node as it becomes a message: while nothing else is recorded. */
static int made_by(const struct front_launch *l, struct front_graph **ret)
{
    struct front_launch on_legacy = *l;
    int code;

    on_legacy.stream = NULL;
    if ((code = front_capture_begin(NULL)))
        return code;
    code = front_launch(&on_legacy);
    front_capture_end(ret);
    if (!code && (*ret)->n == 1)
        return WIRE_OK;
    front_graph_free(*ret);
    return code ? code : WIRE_INVALID;
}

int front_graph_add(struct front_graph *g, const struct front_launch *l, size_t *ret_node)
{
    struct front_graph *one;
    int code = made_by(l, &one);

    if (code)
        return code;
    *ret_node = g->n;
    code = append(g, one->v[0]->op, &one->v[0]->body, wire_size(one->v[0]->op), one->v[0]->tail, one->v[0]->n_tail);
    front_graph_free(one);
    return front_fail(code);
}

int front_graph_set(struct front_graph *g, size_t node, const struct front_launch *l)
{
    struct front_graph *one;
    struct node *mine;
    int code = node < g->n ? made_by(l, &one) : front_fail(WIRE_INVALID);

    if (code)
        return code;
    mine = g->v[node];
    g->v[node] = one->v[0];
    one->v[0] = mine;
    front_graph_free(one);
    return WIRE_OK;
}

int front_graph_launch(const struct front_graph *g, void *stream)
{
    int code = WIRE_OK;

    for (size_t i = 0; i < g->n && !code; i++) {
        const struct node *n = g->v[i];
        union wire_body body = n->body;
        uint32_t *at = client_stream_of(n->op, &body);

        if (at)
            *at = number(stream);
        code = client_repeat(front_client(), n->op, &body, n->tail, n->n_tail);
    }
    return front_fail(code);
}
