/* bench_compare.h - two finished benchmarks against each other, task by task.
 *
 * {"schema":"musacoder.bench.compare/1","a":{"name","dir","suite","backend","samples","tasks",
 *  "made_by","machine","seed" (as in bench.json)},"b":{..},
 *  "notes":[text,..],"faster_than","only_a":n,"only_b":n (tasks that the other lacks, or has no judged sample of),
 *  "groups":[{"name" (a family or level, in order; last "all"),"tasks",
 *    "avg":{"a","b","difference" (b - a),"ci":[lo,hi]|null,"better","worse","p"},
 *    "first":{"tasks","both","only_a","only_b","neither","p"},
 *    "speed":{"eager":null|{"tasks","ratio","ci","faster","slower","p"},"compile":..}},..],
 *  "tasks":[{"task","family","kind":null|"gained"|"lost"|"better"|"worse"|"faster"|"slower",
 *            "a":{"passed","n","first","eager","compile"},"b":{..},"ratio"},..]}
 *
 * avg: mean over common tasks of the share that passes; ci: stats_change_interval over the tasks' differences; p:
 * sign test of tasks whose share rose against those whose share fell. first: samples number 0 only, McNemar's exact
 * test. speed: over tasks that both sides solve with a trusted time, ratio = exp(mean of log(b's speedup / a's)),
 * above 1 where b is faster; a task's speedup is the geometric mean over its passed samples; p: Wilcoxon's
 * signed-rank test of the log ratios. kind: of the first samples gained or lost; else the share; else the speed
 * against eager, when the intervals of both sides do not touch, or without intervals when the ratio exceeds
 * faster_than. */
#ifndef MC_BENCH_BENCH_COMPARE_H
#define MC_BENCH_BENCH_COMPARE_H

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"

/* Folders of bench_run with bench.json and verdicts.jsonl. ERR_INPUT: not finished, or no common task. *ret is new. */
int bench_compare(const char *dir_a, const char *dir_b, double faster_than, json_t **ret, struct err *e);
void bench_compare_table(FILE *out, const json_t *v);

#endif
