/* stats.h - what two benchmarks may claim about each other: exact paired tests, and bootstrap intervals over tasks.
 * Pure functions: data in, numbers out. All tests are two-sided. */
#ifndef MC_BENCH_STATS_H
#define MC_BENCH_STATS_H

#include <stdbool.h>
#include <stdint.h>

/* Exact sign test of 'wins' against 'losses' (ties left out): 2 P(X <= min) with X ~ Binomial(wins + losses, 1/2), at
 * most 1. On the discordant pairs of a 2x2 table this is McNemar's exact test (McNemar 1947; Dixon and Mood 1946). 1
 * without any. NaN when negative. */
double stats_sign_p(int wins, int losses);

struct wilcoxon {
    int n;         /* differences that are not zero */
    double w_plus; /* sum of the ranks of positive differences; equal sizes share their mean rank */
    double p;      /* 1 when n is 0 */
    bool exact;
};

#define WILCOXON_EXACT_MAX 400

/* Wilcoxon's signed-rank test (Wilcoxon 1945). Zeros are dropped, as Wilcoxon did, and so is what is not finite. Exact
 * given the ties (the distribution over all 2^n signs, by dynamic programming) up to WILCOXON_EXACT_MAX differences,
 * above that the normal approximation with the ties' own variance and a continuity correction. */
struct wilcoxon stats_wilcoxon(const double *d, int n);

struct interval {
    double lo, hi;
};

#define BOOTSTRAP_ROUNDS 10000

/* 95 % percentile bootstrap interval of the mean of x (n), x drawn with replacement (Efron 1979). x are tasks, or
 * paired differences of tasks: samples of one task are not independent of each other, tasks are. The same seed gives
 * the same interval. NaN when n < 2 or all x are equal: such data say nothing about the spread, and 0 to 0 would
 * claim too much. */
struct interval stats_bootstrap_mean(const double *x, int n, uint64_t seed);

/* 95 % score interval of a share p of n trials (Wilson 1927); n need not be whole. Within [0, 1], and never of no
 * width: 0 of 10 gives 0 to 0.28. NaN when n <= 0 or p is not finite. */
struct interval stats_wilson(double p, double n);

/* 95 % interval of the mean of x (n), shares in [0, 1] of tasks, of 'programs' programs in all. Wilson's interval
 * with as many trials as give the mean the standard error that the tasks show (p (1 - p) / se^2, as Korn and Graubard
 * 1998 do for proportions of clustered samples), at least one for each task and at most one for each program; one for
 * each task where all shares are equal. NaN when n is 0. */
struct interval stats_share_interval(const double *x, int n, double programs);

/* 95 % interval of the mean of d (n), differences in [-1, 1] of paired shares: the bootstrap above. Where all are
 * equal, so that the bootstrap says nothing, their value give or take the upper end of Wilson's interval of 0 of n:
 * as many tasks may yet change. NaN when n is 0. */
struct interval stats_change_interval(const double *d, int n);

double stats_mean(const double *x, int n); /* NaN when n is 0 */
/* Quantile q in [0, 1] of ascending x, linear between neighbours (Hyndman and Fan's type 7). NaN when n is 0. */
double stats_quantile(const double *sorted, int n, double q);

#endif
