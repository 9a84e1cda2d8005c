/* stats.c - see stats.h. */
#include "bench/stats.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/numbers.h"
#include "base/rng.h"

double stats_sign_p(int wins, int losses)
{
    int n = wins + losses, least = wins < losses ? wins : losses;
    double p = 0;

    if (wins < 0 || losses < 0)
        return NAN;
    for (int i = 0; i <= least; i++)
        p += exp(lgamma(n + 1.0) - lgamma(i + 1.0) - lgamma(n - i + 1.0) - n * M_LN2);
    return fmin(1, 2 * p);
}

/* ---- Wilcoxon ---- */

static int stats_by_size(const void *a, const void *b)
{
    double x = fabs(*(const double *)a), y = fabs(*(const double *)b);

    return (x > y) - (x < y);
}

/* Twice the mean rank of each of the sorted differences: whole numbers even with ties. */
static void stats_double_ranks(const double *d, int n, int64_t *rank)
{
    for (int i = 0, j; i < n; i = j) {
        for (j = i; j < n && fabs(d[j]) == fabs(d[i]); j++)
            ;
        for (int k = i; k < j; k++)
            rank[k] = i + 1 + j; /* ranks i+1 .. j */
    }
}

/* P(W <= w) when each rank is positive with chance 1/2. prob[s]: of sum s among the ranks so far. */
static double stats_exact_below(const int64_t *rank, int n, int64_t total, int64_t w)
{
    double *prob = xcalloc((size_t)total + 1, sizeof *prob), p = 0;
    int64_t reach = 0;

    prob[0] = 1;
    for (int i = 0; i < n; i++) {
        reach += rank[i];
        for (int64_t s = reach; s >= 0; s--)
            prob[s] = 0.5 * (prob[s] + (s >= rank[i] ? prob[s - rank[i]] : 0));
    }
    for (int64_t s = 0; s <= w; s++)
        p += prob[s];
    free(prob);
    return p;
}

/* The two-sided p of Wilcoxon's statistic w by the normal approximation, with ties and continuity. */
static double stats_normal_p(const int64_t *rank, int n, int64_t total, int64_t w)
{
    double var = 0, z;

    for (int i = 0; i < n; i++)
        var += 0.25 * (double)rank[i] * (double)rank[i];
    z = (fabs((double)w - 0.5 * (double)total) - 1) / sqrt(var); /* 1: half a rank, doubled */
    return z <= 0 ? 1 : erfc(z / M_SQRT2);
}

struct wilcoxon stats_wilcoxon(const double *d, int n)
{
    struct wilcoxon r = {.p = 1, .exact = true};
    double *x = xcalloc((size_t)n + 1, sizeof *x);
    int64_t *rank = xcalloc((size_t)n + 1, sizeof *rank), total, plus = 0;

    for (int i = 0; i < n; i++)
        if (isfinite(d[i]) && d[i] != 0)
            x[r.n++] = d[i];
    qsort(x, (size_t)r.n, sizeof *x, stats_by_size);
    stats_double_ranks(x, r.n, rank);
    total = (int64_t)r.n * (r.n + 1);
    for (int i = 0; i < r.n; i++)
        plus += x[i] > 0 ? rank[i] : 0;
    r.w_plus = 0.5 * (double)plus;
    r.exact = r.n <= WILCOXON_EXACT_MAX;
    if (r.n)
        r.p = r.exact ? fmin(1, 2 * stats_exact_below(rank, r.n, total, plus < total - plus ? plus : total - plus))
                      : stats_normal_p(rank, r.n, total, plus);
    free(x);
    free(rank);
    return r;
}

/* ---- intervals ---- */

double stats_mean(const double *x, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += x[i];
    return n > 0 ? sum / n : NAN;
}

double stats_quantile(const double *sorted, int n, double q)
{
    double at = q * (n - 1);
    int i = (int)at;

    if (n < 1)
        return NAN;
    return i + 1 < n ? sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

struct interval stats_bootstrap_mean(const double *x, int n, uint64_t seed)
{
    double *means;
    struct interval r = {NAN, NAN};
    struct rng g;

    if (n < 2)
        return r;
    means = xcalloc(BOOTSTRAP_ROUNDS, sizeof *means);
    rng_seed(&g, seed, (uint64_t)n);
    for (int k = 0; k < BOOTSTRAP_ROUNDS; k++) {
        double sum = 0;
        for (int i = 0; i < n; i++)
            sum += x[rng_below(&g, (uint64_t)n)];
        means[k] = sum / n;
    }
    numbers_sort(means, BOOTSTRAP_ROUNDS);
    if (means[0] < means[BOOTSTRAP_ROUNDS - 1]) {
        r.lo = stats_quantile(means, BOOTSTRAP_ROUNDS, 0.025);
        r.hi = stats_quantile(means, BOOTSTRAP_ROUNDS, 0.975);
    }
    free(means);
    return r;
}

#define NORMAL_95 1.959963984540054

struct interval stats_wilson(double p, double n)
{
    double z2 = NORMAL_95 * NORMAL_95, middle, half;

    if (!(n > 0) || !isfinite(p))
        return (struct interval){NAN, NAN};
    middle = (p + z2 / (2 * n)) / (1 + z2 / n);
    half = NORMAL_95 / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4 * n * n));
    return (struct interval){fmax(middle - half, 0), fmin(middle + half, 1)};
}

struct interval stats_share_interval(const double *x, int n, double programs)
{
    double p = stats_mean(x, n), square = 0, trials = n;

    for (int i = 0; i < n; i++)
        square += (x[i] - p) * (x[i] - p);
    if (n > 1 && square > 1e-12 * n)
        trials = fmax(n, fmin(programs, p * (1 - p) * (n - 1) * n / square));
    return stats_wilson(p, trials);
}

struct interval stats_change_interval(const double *d, int n)
{
    struct interval r = stats_bootstrap_mean(d, n, 1);
    double mean = stats_mean(d, n), most = stats_wilson(0, n).hi;

    if (isnan(r.lo))
        r = (struct interval){fmax(mean - most, -1), fmin(mean + most, 1)};
    return r;
}
