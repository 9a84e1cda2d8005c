/* foreign.h - samples that somebody else made: which file belongs to which task of a suite.
 *
 * Layouts, all may be mixed: KernelBench's runs/RUN/level_L_problem_P_sample_S_kernel.py; TASK/FILE; TASK.py,
 * TASK_N.py, TASK_sample_N.txt; with levels, the same under level1/ ...; or one samples.jsonl of {"task","text"}
 * lines, where "task" is the name with or without its level. *.py are programs, *.txt and *.md are responses; a folder
 * or an archive in the place of a file, and a CUDA source, is an answer of several files (task/bundle.h). */
#ifndef MC_BENCH_FOREIGN_H
#define MC_BENCH_FOREIGN_H

#include <stdbool.h>

#include "base/err.h"
#include "bench/suite.h"

struct foreign_item {
    int task;
    char *file;       /* owned: path of the file, or "samples.jsonl:LINE" */
    char *text;       /* owned: of a line; NULL: read the file */
    bool is_response;
};

struct foreign {
    struct foreign_item *items; /* in order of tasks, then natural order of names */
    int n;
    int *counts;                /* of each task */
    int most;                   /* the largest count */
    char **strays;              /* owned: sample files that belong to no task of the suite */
    int n_strays;
};

int foreign_scan(const char *path, const struct suite *s, struct foreign *ret, struct err *e);
void foreign_free(struct foreign *f);
/* The item's text, new; the caller frees it. task_code: of its task. */
int foreign_text(const struct foreign_item *it, const char *task_code, char **ret, struct err *e);

#endif
