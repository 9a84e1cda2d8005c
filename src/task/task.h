/* task.h - a KernelBench-format task as text: a Python file with class Model, get_inputs and get_init_inputs. */
#ifndef MC_TASK_H
#define MC_TASK_H

#include <stddef.h>

#include "base/err.h"

#define TASK_MAX_BYTES (4u << 20)

struct task {
    char *name;      /* owned; "19_ReLU" for .../19_ReLU.py */
    char *code;      /* owned, NUL-terminated */
    size_t n;
    char sha256[65]; /* of the code */
};

/* Fails with ERR_INPUT when the file is missing, too large, holds a NUL byte, or lacks 'class Model', 'get_inputs' or
 * 'get_init_inputs' (as text at the start of a line; whether they work is the reference side's business). */
int task_read(const char *path, struct task *ret, struct err *e);
int task_make(const char *name, const char *code, size_t n, struct task *ret, struct err *e); /* same checks, copies */
void task_free(struct task *t);

#endif
