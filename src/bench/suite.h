/* suite.h - a benchmark suite: KernelBench-format task files, in natural order (2_x before 10_x). Either a plain
 * folder, or KernelBench itself with its levels. */
#ifndef MC_BENCH_SUITE_H
#define MC_BENCH_SUITE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "task/task.h"

#define SUITE_MAX_LEVEL 9

struct suite {
    struct task *tasks;
    /* of each task, owned: "chain" of chain_0017; "all" when the name does not end in _NUMBER; "level 1" */
    char **families;
    int *levels;     /* of each task; NULL: a plain folder */
    char **skips;    /* of each task, owned: why it cannot be judged; NULL: it can, as far as we know */
    int n;
    char sha256[65]; /* of all names and codes, in order */
};

/* path: a folder of *.py files, or one task file. limit > 0 keeps the first so many. ERR_INPUT when there is none. */
int suite_load(const char *path, int limit, struct suite *ret, struct err *e);

/* spec: "open", the suite that comes with the project (suites/README.md), a plain folder; or "kernelbench:DIR" or
 * "musa-kernelbench:DIR" with DIR/KernelBench/level1..9 or DIR/level1..9 of ID_NAME.py files. Tasks are named
 * "level1/19_ReLU" and their families are levels. only: "1,3" keeps these levels; NULL: all that are there. limit > 0
 * keeps the first so many of each level. A file that is no task is kept with its reason in skips. */
int suite_load_spec(const char *spec, const char *only, int limit, struct suite *ret, struct err *e);

/* Every task in another precision, "fp32", "fp16" or "bf16": its floating inputs and parameters, by the line that every
 * reader of tasks obeys (task.h, task_in_dtype). The suite's sha256 changes with it. */
int suite_set_precision(struct suite *s, const char *precision, struct err *e);

void suite_free(struct suite *s);
int suite_find(const struct suite *s, const char *name); /* index, or -1 */


/* digit runs compare as numbers; a total order on different strings */
int natural_compare(const char *a, const char *b);

#endif
