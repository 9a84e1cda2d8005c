/* memory_plan.c - see memory_plan.h. */
#include "exec/memory_plan.h"

#define GIB 1073741824.0
#define REFERENCE_PARTS ((uint64_t)2 << 30) /* of values in double, as runner/streamed.py makes them */

static uint64_t memory_plan_less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t memory_plan_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t memory_plan_smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Its model and a copy in double, what forward has alive, and the same in double a part at a time. */
static uint64_t memory_plan_reference_least(const struct plan_sizes *s, uint64_t eager)
{
    return 3 * s->state + eager + REFERENCE_PARTS;
}

/* How much device memory, in bytes, judge, reference, timing and candidate get; *ret tells which mode fits. */
void memory_plan_make(const struct plan_sizes *s, uint64_t device_memory, struct memory_plan *ret)
{
    uint64_t eager = s->eager_peak ? memory_plan_larger(s->eager_peak, s->outputs) : 2 * s->outputs, rest;
    struct memory_plan p = {.usable = memory_plan_less(device_memory - device_memory / PLAN_SLACK,
                                                       PLAN_CONTEXTS * PLAN_CONTEXT)};

    p.judge = s->inputs + 2 * PLAN_TILE;
    p.reference = memory_plan_reference_least(s, eager);
    p.timing = 3 * s->state + eager;
    p.least = s->state + s->outputs;
    rest = memory_plan_less(p.usable, p.judge + memory_plan_larger(p.reference, p.timing));
    p.reference += memory_plan_smaller(memory_plan_less(s->reference_peak, p.reference),
                                       memory_plan_less(rest, 2 * p.least));
    p.recording = memory_plan_less(p.usable, p.judge + memory_plan_larger(p.reference, p.timing));
    p.fits = p.recording >= p.least;
    *ret = p;
}

void plan_text(const struct memory_plan *p, struct buf *out)
{
    buf_addf(out, "a candidate may hold %.1f of %.1f GiB, and needs %.1f", (double)p->recording / GIB,
             (double)p->usable / GIB, (double)p->least / GIB);
}

/* ---- tiles ---- */

/* Tiles of whole rows that take at most PLAN_TILE bytes; of less than a row where one is too large. */
struct plan_tiles plan_tiles_make(int64_t n, int64_t row, uint64_t element_bytes)
{
    int64_t most = (int64_t)(PLAN_TILE / (element_bytes ? element_bytes : 1));
    struct plan_tiles t = {n, row > 0 && row <= most ? most / row * row : most};

    if (t.per > n)
        t.per = n;
    return t;
}

int64_t plan_tiles_count(const struct plan_tiles *t)
{
    return t->per > 0 ? (t->n + t->per - 1) / t->per : 0;
}

int64_t plan_tile(const struct plan_tiles *t, int64_t i, int64_t *ret_from)
{
    *ret_from = i * t->per;
    return t->n - *ret_from < t->per ? t->n - *ret_from : t->per;
}
