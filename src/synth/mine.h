/* mine.h - tasks mined from a source tree: every nn.Module class becomes a KernelBench-format task or a named refusal.
 *
 * OUT/tasks/NAME.py are the tasks, OUT/mined.jsonl has one line for each class:
 *   {"key","path","class","line","task":"NAME" or null,"reason","detail","inputs","sha256" of the file}
 * and OUT/report.json counts them by reason. The journal makes an interrupted run continue: a class whose text and
 * hints are as they were is not tried again. Files are parsed and classes run in a jail; nothing of the tree is
 * imported. */
#ifndef MC_SYNTH_MINE_H
#define MC_SYNTH_MINE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "task/task.h"

struct mine_options {
    const char *tree, *out;
    const char *hints;   /* NULL, or a YAML or JSON file: class -> {"init": [..], "inputs": [[4, 16], ..]} */
    const char *against; /* NULL, or a folder of tasks that mined ones must not be like, such as KernelBench */
    int limit;           /* classes at most; 0: all */
    double timeout_s;    /* for one class */
    bool no_jail;
    /* The judge's lint (lint/lint.h): a new report. NULL: tasks are not linted. */
    int (*lint)(const struct task *t, json_t **ret, void *ctx, struct err *e);
    void *ctx;
};

struct mine_stats {
    int files, classes, tasks, before; /* before: classes that the journal had */
    json_t *reasons;                   /* reason -> how often; owned by the caller */
};

struct mine_reason {
    const char *name, *about;
};
extern const struct mine_reason mine_reasons[]; /* ends with a NULL name */

/* ERR_STOP after Ctrl-C: the same options continue. */
int mine_tree(const struct mine_options *o, struct mine_stats *ret, struct err *e);

#endif
