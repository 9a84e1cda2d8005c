/* plan.c - see plan.h. */
#include "exec/plan.h"

#define GIB 1073741824.0

const char *const plan_phase_name[PLAN_PHASES] = {"call", "expect", "compare", "oracle", "time"};

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t usable(const struct plan_device *d)
{
    return less(d->memory - d->memory / PLAN_SLACK, (uint64_t)d->contexts * PLAN_CONTEXT);
}

/* State and inputs of both precisions, forward in double, and two answers beside it: the reference's own, and the first
 * oracle's while rounded inputs go the same way. */
static uint64_t oracle_bytes(const struct plan_sizes *s, uint64_t peak)
{
    int wide = s->is_double ? 1 : 2;

    return s->state * (1 + (uint64_t)wide) + s->inputs * (1 + (uint64_t)wide) + peak * (uint64_t)wide +
           s->outputs * (1 + (uint64_t)wide);
}

/* All but the state shrinks with the rows of a tile. */
static void plan_the_oracle(const struct plan_sizes *s, uint64_t peak, struct plan *p)
{
    uint64_t all = oracle_bytes(s, peak), fixed = s->state * (s->is_double ? 2 : 3), room = less(p->usable, fixed);
    int64_t tiles = room ? (int64_t)((all - fixed + room - 1) / room) : 0;

    p->oracle = all <= p->usable ? ORACLE_WHOLE : tiles > 0 && tiles <= s->rows ? ORACLE_TILES : ORACLE_SMALL;
    p->oracle_tiles = p->oracle == ORACLE_TILES ? tiles : 1;
    p->need[PLAN_ORACLE] = p->oracle == ORACLE_SMALL ? 0 : fixed + (all - fixed) / (uint64_t)p->oracle_tiles;
}

static void plan_the_time(const struct plan_sizes *s, uint64_t peak, struct plan *p)
{
    uint64_t ours = s->state + s->inputs + s->outputs, theirs = s->state + peak, both = ours + theirs;

    p->timed_together = both <= p->usable;
    p->together = p->timed_together ? p->usable - both : 0;
    p->need[PLAN_TIME] = p->timed_together ? both : ours > theirs + s->inputs ? ours : theirs + s->inputs;
}

void memory_plan_make(const struct plan_sizes *s, const struct plan_device *d, struct plan *ret)
{
    uint64_t peak = s->eager_peak > s->outputs ? s->eager_peak : s->eager_peak ? s->outputs : 2 * s->outputs;
    struct plan p = {.usable = usable(d)};

    p.need[PLAN_CALL] = 2 * s->state + s->inputs + s->outputs;
    p.need[PLAN_EXPECT] = p.need[PLAN_CALL] + peak;
    p.need[PLAN_COMPARE] = 2 * s->outputs + PLAN_TILE;
    for (enum plan_phase k = PLAN_CALL; k <= PLAN_COMPARE; k++)
        p.worst = p.need[k] > p.need[p.worst] ? k : p.worst;
    p.fits = p.need[p.worst] <= p.usable;
    p.candidate = less(p.usable, p.need[PLAN_CALL]);
    plan_the_oracle(s, peak, &p);
    plan_the_time(s, peak, &p);
    *ret = p;
}

void plan_text(const struct plan *p, struct buf *out)
{
    buf_addf(out, "%.1f of %.1f GiB in %s; ", (double)p->need[p->worst] / GIB, (double)p->usable / GIB,
             plan_phase_name[p->worst]);
    if (!p->fits) {
        buf_adds(out, "the task does not fit");
        return;
    }
    buf_addf(out, "a candidate may allocate %.1f GiB; ", (double)p->candidate / GIB);
    if (p->oracle == ORACLE_TILES)
        buf_addf(out, "oracle in %lld tiles; ", (long long)p->oracle_tiles);
    else
        buf_addf(out, "oracle %s; ", p->oracle == ORACLE_WHOLE ? "whole" : "of a smaller task");
    if (p->timed_together)
        buf_addf(out, "timed together up to %.1f GiB", (double)p->together / GIB);
    else
        buf_adds(out, "timed in turns");
}

/* ---- tiles ---- */

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
