/* task.h - a KernelBench-format task: a Python file with class Model, get_inputs and get_init_inputs, as text, and what
 * its sidecar (NAME.yaml beside NAME.py, see sidecar.h) adds. */
#ifndef MC_TASK_H
#define MC_TASK_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

#define TASK_MAX_BYTES (4u << 20)

struct task {
    char *name;      /* owned; "19_ReLU" for .../19_ReLU.py */
    char *code;      /* owned, NUL-terminated */
    size_t n;
    char sha256[65]; /* of the code; with a sidecar, of both: everything that a verdict depends on */
    json_t *sidecar; /* owned, as sidecar_check gives it; NULL: there is none */
};

/* Fails with ERR_INPUT when the file is missing, too large, holds a NUL byte, or lacks 'class Model', 'get_inputs' or
 * 'get_init_inputs' (as text at the start of a line; whether they work is the reference side's business), or when a
 * sidecar lies beside it that is not right. */
int task_read(const char *path, struct task *ret, struct err *e);
int task_make(const char *name, const char *code, size_t n, struct task *ret, struct err *e); /* same checks, copies */
/* Gives a task its sidecar (any form that sidecar_check takes, so also another task's t->sidecar; NULL: none) and its
 * new address. what: for messages. */
int task_attach(struct task *t, const json_t *sidecar, const char *what, struct err *e);
void task_free(struct task *t);
char *task_sidecar_path(const char *path); /* "a/19_ReLU.py" -> "a/19_ReLU.yaml", whether it is there or not; owned */

/* Variant i of 0..task_variants(t): 0 is the task as written, i > 0 the sidecar's i-th. TASK_NUMBERS is every task's:
 * the numbers among its inputs that are no tensors are others. */
enum { TASK_NUMBERS = -1 };
int task_variants(const struct task *t);             /* how many besides the task as written; 0 without a sidecar */
const char *task_variant_name(const struct task *t, int i); /* NULL for 0 */
const json_t *task_variant(const struct task *t, int i);    /* a shared object, NULL for 0 */
/* Workload i of 0..task_workloads(t) as a task of its own: 0 is the task as written with its variants, i > 0 has the
 * sidecar's i-th entry in a last line '#@workload: {..}' that every reader of tasks obeys (runner/reference.py). */
int task_workloads(const struct task *t); /* how many besides the task as written */
const char *task_workload_name(const struct task *t, int i); /* "as written" for 0 */
void task_workload_text(const struct task *t, int i, char *out, size_t n); /* as task_variant_text; "" for 0 */
int task_workload(const struct task *t, int i, struct task *ret, struct err *e);
int task_workload_find(const struct task *t, const char *name); /* its number; 0 for NULL and for no such name */
/* Changes the task to this dtype ("float16"), in the same way; its sidecar stays. */
int task_in_dtype(struct task *t, const char *dtype, struct err *e);
/* What holds for variant i: its own value of key ("tolerance" or "regimes"), else the sidecar's, else NULL. */
const json_t *task_setting(const struct task *t, int i, const char *key);
/* "batch_size = 3, float16, input 0 transposed" of a variant, for messages. */
void task_variant_text(const struct task *t, int i, char *out, size_t n);

#endif
