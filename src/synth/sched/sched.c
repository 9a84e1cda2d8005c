/* sched.c - the tables of all schedules, and which of them fit. */
#include "synth/sched/sched.h"

#include <string.h>

extern const struct sched sched_map_rows[], sched_reduce_rows[], sched_contract_rows[], sched_window_rows[],
    sched_scan_rows[], sched_attend_rows[];

static const struct sched *const tables[] = {sched_map_rows, sched_reduce_rows, sched_contract_rows, sched_window_rows,
                                             sched_scan_rows, sched_attend_rows};

#define ROWS_MAX 128
static const struct sched *rows[ROWS_MAX];
static int n_rows;

__attribute__((constructor)) static void sched_collect(void)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct sched *s = tables[i]; s->name && n_rows < ROWS_MAX; s++)
            rows[n_rows++] = s;
}

const struct sched *const *sched_rows(int *n)
{
    *n = n_rows;
    return rows;
}

const struct sched *sched_find(enum nest_class c, const char *name)
{
    for (int i = 0; i < n_rows; i++)
        if (rows[i]->classes >> c & 1 && !strcmp(rows[i]->name, name))
            return rows[i];
    return NULL;
}

static bool sched_output_is_sum(const struct nest *k)
{
    return k->n_stats == 1 && k->stat[0].c == C_SUM && !k->stat[0].fin && ax_is_id(k->out, "s0") && k->out_t.dtype ==
        DT_F32;
}

int sched_for(const struct nest *k, const struct sched **ret, int max)
{
    int n = 0;

    for (int i = 0; i < n_rows && n < max; i++)
        if (rows[i]->classes >> k->class & 1 && (!(rows[i]->flags & SCHED_ATOMIC) || sched_output_is_sum(k)) &&
            (!rows[i]->fits || rows[i]->fits(k)))
            ret[n++] = rows[i];
    return n;
}

int sched_tune(const struct sched *s, int t, struct rng *r)
{
    const int *v = s->tune[t].choice;
    int n = 0;

    while (n < 6 && v[n])
        n++;
    return n ? v[r && rng_below(r, 2) ? rng_below(r, (uint64_t)n) : 0] : 0;
}
