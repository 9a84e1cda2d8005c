/* shrink.h - a big task becomes small: see runner/shrink.py for how. Runs the task jailed, never in our process. */
#ifndef MC_LINT_SHRINK_H
#define MC_LINT_SHRINK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "task/task.h"

struct shrunk {
    char *source;         /* owned: the new task file */
    json_t *changes;      /* owned: [{"name","line","from","to"}] */
    int64_t before, after; /* elements of the largest tensor */
};

/* For many tasks: one Python process, which starts with the first task whose result the cache folder lacks. Results
 * and refusals are kept there by content: the task's text, the limit, and the program that made it small; they hold
 * as long as its PyTorch is the one that is installed. Any number of threads may ask at once; close when all have
 * returned. */
struct shrinker;
int shrinker_open(bool no_jail, struct shrinker **ret, struct err *e);
int shrinker_task(struct shrinker *s, const struct task *t, int64_t max_elements, struct shrunk *ret, struct err *e);
void shrinker_close(struct shrinker *s); /* NULL is fine */

/* For one. ERR_INPUT when the task is broken or its module-level sizes cannot do it. */
int shrink_task(const struct task *t, int64_t max_elements, bool no_jail, struct shrunk *ret, struct err *e);
void shrunk_free(struct shrunk *s);

#endif
