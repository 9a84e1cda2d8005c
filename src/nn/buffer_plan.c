/* buffer_plan.c - see buffer_plan.h. */
#include "nn/buffer_plan.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

void plan_add(struct buffer_plan *p, const char *name, size_t bytes, int from, int to, void *where)
{
    if (p->n == PLAN_MAX)
        abort(); /* a bug: the list of buffers is fixed in the source */
    p->item[p->n++] = (struct plan_item){name, (bytes + 255) / 256 * 256, from, to, where, 0};
}

/* True if both are alive at the same step. */
static bool buffer_plan_meet(const struct plan_item *a, const struct plan_item *b) { return a->from <= b->to &&
                                                                                     b->from <= a->to; }

/* The lowest offset at which item i fits beside those that are placed. Candidates: 0 and the end of each placed one. */
static size_t buffer_plan_lowest(const struct buffer_plan *p, const bool *placed, int i)
{
    const struct plan_item *x = &p->item[i];
    size_t best = SIZE_MAX;

    for (int c = -1; c < p->n; c++) {
        size_t at = c < 0 ? 0 : p->item[c].at + p->item[c].bytes;
        bool fits = c < 0 || placed[c];
        for (int j = 0; j < p->n && fits; j++)
            if (placed[j] && buffer_plan_meet(x, &p->item[j]))
                fits = at + x->bytes <= p->item[j].at || p->item[j].at + p->item[j].bytes <= at;
        if (fits && at < best)
            best = at;
    }
    return best;
}

void plan_layout(struct buffer_plan *p)
{
    bool placed[PLAN_MAX] = {false};

    p->bytes = 0;
    for (int k = 0; k < p->n; k++) {
        int i = -1;
        for (int j = 0; j < p->n; j++)
            if (!placed[j] && (i < 0 || p->item[j].bytes > p->item[i].bytes))
                i = j;
        p->item[i].at = buffer_plan_lowest(p, placed, i);
        placed[i] = true;
        if (p->item[i].at + p->item[i].bytes > p->bytes)
            p->bytes = p->item[i].at + p->item[i].bytes;
    }
}

void plan_place(const struct buffer_plan *p, char *slab)
{
    for (int i = 0; i < p->n; i++)
        if (p->item[i].where) {
            void *at = slab + p->item[i].at;
            memcpy(p->item[i].where, &at, sizeof at); /* the address of a pointer of any type */
        }
}

int plan_check(const struct buffer_plan *p, size_t others, const char *others_are, size_t max, const char *advice,
               struct err *e)
{
    struct buf b;

    if (p->bytes + others <= max)
        return 0;
    buf_init(&b, 2000);
    buf_addf(&b, "this needs %.0f MB but %.0f MB are there; %s: %s %.0f", (double)(p->bytes + others) / 1e6,
             (double)max / 1e6, advice, others_are, (double)others / 1e6);
    for (int i = 0; i < p->n; i++) {
        size_t sum = p->item[i].bytes;
        while (i + 1 < p->n && !p->item[i + 1].name)
            sum += p->item[++i].bytes;
        if (sum > (p->bytes + others) / 100 && p->item[i].name)
            buf_addf(&b, ", %s %.0f", p->item[i].name, (double)sum / 1e6);
    }
    buf_adds(&b, " MB");
    err_set(e, ERR_ENV, "%s", b.p);
    buf_free(&b);
    return -1;
}
