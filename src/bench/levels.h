/* levels.h - the numbers of a suite, level by level and together.
 *
 * "levels": one object per level and a last one named "all":
 *   {"name":"level 1","level":1 (0: all),"tasks","judged_tasks","samples" (judged ones),"missing","skipped","infra",
 *    "pass_at":{"1","2","4","8",..,"K"},"avg","avg_ci":[lo,hi],"pass_ci":[lo,hi] (of the largest k),
 *    "speed":{"eager":null | {"faster","fast_p":{"0","0.5","0.8","1","1.5","2"},"timed","untrusted","geomean","median",
 *             "p10","p90"},"compile":..},
 *    "categories":{"passed":n,..}}
 * "missing":{"policy":"skip"|"fail","samples","tasks"}, "skipped":[{"task","reason","samples"},..] in order of tasks,
 * "strays":{"n","first":[..]} (sample files of no task), "shrink_to".
 *
 * Means are over tasks that have judged samples; with policy "fail" a missing sample is a judged failure. pass_at is
 * the unbiased estimate, k cut to a task's samples. avg is the mean share of a task's samples that pass; intervals
 * are stats_share_interval's. "faster" is the share of candidates (all tasks together) that pass and whose speedup's
 * lower bound exceeds faster_than. fast_p is the mean over tasks of the share that passes with a speedup above p,
 * point estimate, as KernelBench defines it (which looks at sample 0 only: the same with one sample per task and
 * policy "fail"). A passed sample without a trusted time is not faster than anything. geomean, median, p10 and p90
 * are of passed samples with a time. "speed" is null where no sample of the run has a performance section. */
#ifndef MC_BENCH_LEVELS_H
#define MC_BENCH_LEVELS_H

#include <jansson.h>

struct bench_run;

#define N_FAST_P 6
extern const double fast_p_at[N_FAST_P];
extern const char *const fast_p_name[N_FAST_P];

void levels_summary(const struct bench_run *b, json_t *into);

#endif
