/* choose.c - see choose.h. */
#include "nn/choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The token of the largest logit; the lowest id among equals. */
static int32_t choose_argmax(int V, const float *z)
{
    int32_t best = 0;

    for (int i = 1; i < V; i++)
        if (z[i] > z[best])
            best = i;
    return best;
}

#define BLOCK 64
#define MAX_BLOCKS 1024

/* The first id whose cumulative weight exceeds u * sum; blocks are skipped by their sums. */
static int32_t choose_draw_all(int V, const float *p, double u)
{
    double total = 0, at = 0, block[MAX_BLOCKS];
    int n = (V + BLOCK - 1) / BLOCK, per = (n + MAX_BLOCKS - 1) / MAX_BLOCKS, k = 0, i, last = 0;

    for (int b = 0; b < n; b += per, k++) {
        int end = (b + per) * BLOCK < V ? (b + per) * BLOCK : V;
        double s[4] = {0};
        for (i = b * BLOCK; i + 4 <= end; i += 4)
            for (int j = 0; j < 4; j++)
                s[j] += p[i + j];
        for (; i < end; i++)
            s[0] += p[i];
        block[k] = (s[0] + s[1]) + (s[2] + s[3]);
        total += block[k];
    }
    u *= total;
    for (i = 0; i < k - 1 && at + block[i] <= u; i++)
        at += block[i];
    for (i *= per * BLOCK; i < V; i++) {
        if (p[i] > 0)
            last = i;
        at += p[i];
        if (at > u)
            return i;
    }
    return last; /* rounding left u a hair above the sum */
}

/* qsort: the most probable first, equal ones by id. */
static int choose_by_weight(const void *a, const void *b)
{
    const struct choice_candidate *x = a, *y = b;

    if (x->p != y->p)
        return x->p < y->p ? 1 : -1;
    return x->id - y->id;
}

/* Ids below (1 - top_p) / V of the mass weigh less than 1 - top_p together, so the kept set is among the others. */
static int choose_collect(int V, const float *p, float sum, const struct choice_rule *rule, struct choice_candidate *c)
{
    float least = rule->top_p < 1 ? sum * (1 - rule->top_p) / (float)V : 0;
    int n = 0;

    for (int i = 0; i < V; i++)
        if (p[i] >= least)
            c[n++] = (struct choice_candidate){p[i], i};
    qsort(c, (size_t)n, sizeof *c, choose_by_weight);
    return n;
}

/* Draws by u in [0, 1) among the tokens that top-k and top-p keep; *ret_mass is what these have of 'sum'. */
static int32_t choose_draw_top(int V, const float *p, float sum, const struct choice_rule *rule, double u,
                               struct choice_candidate *c, int *ret_kept, double *ret_mass)
{
    int n = choose_collect(V, p, sum, rule, c), kept = 0;
    double mass = 0, at = 0;

    n = rule->top_k > 0 && rule->top_k < n ? rule->top_k : n;
    while (kept < n && (kept == 0 || mass < (double)rule->top_p * sum))
        mass += c[kept++].p;
    *ret_kept = kept;
    *ret_mass = mass;
    u *= mass;
    for (int i = 0; i < kept; i++) {
        at += c[i].p;
        if (at > u)
            return c[i].id;
    }
    return c[kept - 1].id;
}

/* The sum, taken in doubles. */
static float choose_sum_of(int n, const float *p)
{
    double s = 0;

    for (int i = 0; i < n; i++)
        s += p[i];
    return (float)s;
}

int32_t choose_token(const struct ops *op, int V, const float *z, const struct choice_rule *rule, struct rng *r,
                     float *scratch, struct choice_candidate *cand, int *ret_kept, float *ret_logp)
{
    bool greedy = rule->temperature <= 0, cut = rule->top_p < 1 || (rule->top_k > 0 && rule->top_k < V);
    float inv = greedy ? 1.0f : 1.0f / rule->temperature, max, sum;
    int ids = rule->ids ? rule->ids : V, kept = 0;
    double mass = 0;
    int32_t id;

    memcpy(scratch, z, (size_t)V * sizeof *z);
    sum = op->softmax_row(V, inv, scratch, &max);
    if (greedy)
        id = choose_argmax(ids, z);
    else if (cut)
        id = choose_draw_top(ids, scratch, ids < V ? choose_sum_of(ids, scratch) : sum, rule, rng_f64(r), cand, &kept,
                             &mass);
    else
        id = choose_draw_all(ids, scratch, rng_f64(r));
    *ret_logp = z[id] * inv - max - (ret_kept && kept ? (float)log(mass) : logf(sum));
    if (ret_kept)
        *ret_kept = kept;
    return id;
}
