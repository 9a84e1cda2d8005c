/* suite.h - a benchmark suite: a folder of KernelBench-format task files, in natural order (2_x before 10_x). */
#ifndef MC_BENCH_SUITE_H
#define MC_BENCH_SUITE_H

#include <stddef.h>

#include "base/err.h"
#include "task/task.h"

struct suite {
    struct task *tasks;
    char **families; /* of each task, owned: "chain" of chain_0017; "all" when the name does not end in _NUMBER */
    int n;
    char sha256[65]; /* of all names and codes, in order */
};

/* path: a folder of *.py files, or one task file. limit > 0 keeps the first so many. ERR_INPUT when there is none. */
int suite_load(const char *path, int limit, struct suite *ret, struct err *e);
void suite_free(struct suite *s);
int suite_find(const struct suite *s, const char *name); /* index, or -1 */

int natural_compare(const char *a, const char *b); /* digit runs compare as numbers; a total order on different strings */

#endif
