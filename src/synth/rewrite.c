/* rewrite.c - see rewrite.h. */
#include "synth/rewrite.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define TRIES 8

bool rewrite_find(const struct dag *g, struct rng *r, struct arena *a, struct kernels *k, enum fusion *level,
                  struct kernels *slow)
{
    struct kernels *other = xmalloc(sizeof *other);
    double mine = cost_of(k).us;
    bool found = false;

    for (int i = 0; i < TRIES && !found; i++) {
        enum fusion l = (enum fusion)rng_below(r, N_FUSIONS);
        double theirs;
        fuse(g, l, a, other);
        if (fuse_schedule(other, r) < 0)
            continue;
        theirs = cost_of(other).us;
        found = theirs >= REWRITE_RATIO * mine || mine >= REWRITE_RATIO * theirs;
        if (found && theirs > mine)
            *slow = *other;
        else if (found)
            *slow = *k, *k = *other, *level = l;
    }
    free(other);
    return found;
}

/* Appends the schedule of each kernel behind 'head'. */
static void rewrite_add_schedules(const char *head, const struct kernels *k, struct buf *b)
{
    buf_adds(b, head);
    for (int i = 0; i < k->n; i++)
        buf_addf(b, "%s %s: %s", i ? ";" : "", nest_class_names[k->k[i].nest.class],
                 strchr(k->k[i].s->about, '$') ? "parts of a block share each result" : k->k[i].s->about);
    buf_adds(b, ".\n");
}

char *rewrite_answer(const struct kernels *slow, const struct kernels *fast)
{
    struct cost s = cost_of(slow), f = cost_of(fast);
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    if (s.kernels > f.kernels)
        buf_addf(&b, "It launches %d kernels where %d suffice, and what one stores the next one loads again.\n",
                 s.kernels, f.kernels);
    if (s.bytes > f.bytes)
        buf_addf(&b, "Its kernels ask memory for %lld bytes; %lld are enough.\n", (long long)s.bytes,
                 (long long)f.bytes);
    if (s.steps > f.steps)
        buf_addf(&b, "Its busiest thread takes %lld steps one after the other; %lld are enough.\n", (long long)s.steps,
                 (long long)f.steps);
    rewrite_add_schedules("Slow:", slow, &b);
    rewrite_add_schedules("Faster:", fast, &b);
    return buf_detach(&b);
}
