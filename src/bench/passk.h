/* passk.h - the numbers of a benchmark, as pure functions of counts and verdicts. */
#ifndef MC_BENCH_PASSK_H
#define MC_BENCH_PASSK_H

#include <stdbool.h>

/* Unbiased pass@k of one task from n samples of which c passed: the chance that k samples drawn without replacement
 * hold at least one that passed, 1 - C(n-c, k) / C(n, k) (Chen et al. 2021, arXiv 2107.03374, eq. 1).
 * NaN unless 0 <= c <= n and 1 <= k <= n. */
double pass_at_k(int n, int c, int k);

/* avg@n of one task: the share that passed. NaN when n is 0. */
double avg_at_n(int n, int c);

/* A candidate counts as faster when it is correct, legal and speedup > FASTER_MIN. */
#define FASTER_MIN 1.1
bool is_faster_than(bool passed, double speedup, double min); /* NaN is not faster */

/* One task's counts; tasks without judged samples (all infra) do not enter a mean. */
struct task_counts {
    int n;      /* judged samples, infra excluded */
    int passed;
    int faster; /* by is_faster_than */
};

/* Means over tasks. k is cut to n where a task lost samples to infra. NaN when no task has samples. */
double suite_pass_at_k(const struct task_counts *t, int n_tasks, int k);
double suite_avg(const struct task_counts *t, int n_tasks);
double suite_faster_rate(const struct task_counts *t, int n_tasks); /* share of candidates, all tasks together */

#endif
