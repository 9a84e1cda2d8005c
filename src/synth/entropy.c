/* entropy.c - see entropy.h. */
#include "synth/entropy.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"

#define SKIPPED (ENTROPY_BYTES / 4) /* bytes that are learned from before any is measured */

static const int orders[] = {0, 1, 2, 3, 5, 8, 12};
#define N_ORDERS ((int)(sizeof orders / sizeof *orders))

/* Counts by hash: of a context (n bytes seen, 'distinct' of them different), or of a context with a byte. */
struct count {
    uint64_t key;
    uint32_t n, distinct;
};

struct table {
    struct count *v;
    size_t cap, n;
};

struct entropy {
    struct table counts, requests, answers;
    size_t seen, records, measured, answers_measured;
    double nats;
};

struct entropy *entropy_new(void)
{
    return xcalloc(1, sizeof(struct entropy));
}

void entropy_free(struct entropy *e)
{
    if (e)
        free(e->counts.v), free(e->requests.v), free(e->answers.v);
    free(e);
}

/* The key's slot, or the free one where it would stand. */
static struct count *entropy_slot_of(struct count *v, size_t cap, uint64_t key)
{
    size_t i = key & (cap - 1);

    while (v[i].key && v[i].key != key)
        i = (i + 1) & (cap - 1);
    return &v[i];
}

static void entropy_grow(struct table *t)
{
    size_t cap = t->cap ? 2 * t->cap : 4096;
    struct count *v = xcalloc(cap, sizeof *v);

    for (size_t i = 0; i < t->cap; i++)
        if (t->v[i].key)
            *entropy_slot_of(v, cap, t->v[i].key) = t->v[i];
    free(t->v);
    t->v = v, t->cap = cap;
}

/* The counter of a key, made where there is none. Valid until the next call. */
static struct count *entropy_count_of(struct table *t, uint64_t key)
{
    struct count *c;

    if (2 * t->n >= t->cap)
        entropy_grow(t);
    key |= 1; /* zero is an empty slot */
    c = entropy_slot_of(t->v, t->cap, key);
    if (!c->key)
        c->key = key, t->n++;
    return c;
}

/* Of at most 16 bytes: hash64 would be most of the time. */
static uint64_t entropy_context_key(const unsigned char *at, int order)
{
    uint64_t first = 0, rest = 0, key;

    memcpy(&first, at - order, order < 8 ? (size_t)order : 8);
    if (order > 8)
        memcpy(&rest, at - 8, 8);
    key = (first * 0x9e3779b97f4a7c15u + rest) * 0xd6e8feb86659fd93u + (uint64_t)order * 0xa0761d6478bd642fu;
    return (key ^ key >> 32) * 0xe7037ed1a0b428dbu;
}

static uint64_t entropy_pair_key(uint64_t context, unsigned char byte)
{
    return (context ^ (uint64_t)(byte + 1) * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
}

/* Probability of *at behind the bytes in front of it, of which there are 'before'; counts it. */
static double entropy_learn(struct table *t, const unsigned char *at, size_t before)
{
    double p = 1.0 / 256;

    for (int k = 0; k < N_ORDERS && (size_t)orders[k] <= before; k++) {
        uint64_t context = entropy_context_key(at, orders[k]);
        struct count *pair = entropy_count_of(t, entropy_pair_key(context, *at)), *c;
        uint32_t had = pair->n++;
        c = entropy_count_of(t, context);
        if (c->n)
            p = (had + c->distinct * p) / (c->n + c->distinct);
        c->n++, c->distinct += !had;
    }
    return p;
}

/* Adds the information of the text's bytes from 'from' on, in bits. */
static void entropy_read_text(struct entropy *e, const char *text, size_t from)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = strlen(text);

    for (size_t i = 0; i < n; i++) {
        double p = entropy_learn(&e->counts, s + i, i);
        if (i >= from && e->seen >= SKIPPED)
            e->nats -= log(p), e->measured++;
    }
    e->answers_measured += e->seen >= SKIPPED;
    e->seen += n;
}

bool entropy_is_full(const struct entropy *e)
{
    return e->seen >= ENTROPY_BYTES;
}

void entropy_add(struct entropy *e, const char *request, const char *answer)
{
    char *both;

    e->records++;
    entropy_count_of(&e->requests, hash64(request, strlen(request), 1))->n++;
    entropy_count_of(&e->answers, hash64(answer, strlen(answer), 1))->n++;
    if (entropy_is_full(e))
        return;
    both = xasprintf("%s\n%s", request, answer);
    entropy_read_text(e, both, strlen(request) + 1);
    free(both);
}

void entropy_add_messages(struct entropy *e, const json_t *messages)
{
    size_t n = json_array_size(messages);
    struct buf request;

    if (n < 2)
        return;
    buf_init(&request, BUF_MAX_TEXT);
    for (size_t i = 0; i + 1 < n; i++)
        buf_addf(&request, "%s\n", json_str(json_array_get(messages, i), "content", ""));
    entropy_add(e, request.p, json_str(json_array_get(messages, n - 1), "content", ""));
    buf_free(&request);
}

json_t *entropy_json(const struct entropy *e)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:o, s:o}", "records", (json_int_t)e->records, "distinct_requests",
                     (json_int_t)e->requests.n, "distinct_answers", (json_int_t)e->answers.n, "measured_bytes",
                     (json_int_t)e->measured, "nats_per_byte",
                     e->measured ? json_real(e->nats / (double)e->measured) : json_null(), "nats_per_answer",
                     e->answers_measured ? json_real(e->nats / (double)e->answers_measured) : json_null());
}
