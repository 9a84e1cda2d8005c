/* lint.h - is this task worth asking? What would pass it without work, and what about it misleads a judge.
 *
 * The reference runs jailed (runner/lint.py) and sends draws; what passes is decided here by the arithmetic that judges
 * candidates, at three levels: "strict", "kernelbench fp32" (tolerance 1e-4) and "kernelbench half" (1e-2; the fp32
 * values against the tolerance of half precision). A finding needs an answer that passes every draw of a level.
 *
 * Report, schema musacoder.lint/1:
 *   {"schema","task","task_sha256","max_elements","judged_at":[{"name","line","from","to"}],
 *    "findings":[{"rule","variant"?,"message","evidence":{..numbers..},"remedy"}],"facts":{..}}
 * Rules and what they mean: docs/lint.md, lint_rules below. */
#ifndef MC_LINT_H
#define MC_LINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "task/task.h"

#define LINT_SCHEMA "musacoder.lint/1"

struct lint_options {
    int64_t max_elements; /* a larger task is judged at smaller sizes, batch first */
    int trials;           /* trials per input distribution, and of the published protocol */
    int64_t seed;
    double timeout_s;     /* one task (one variant) */
    double device_gib;    /* rule too_large */
    bool no_jail;
};

#define LINT_OPTIONS_DEFAULT \
    ((struct lint_options){.max_elements = 1 << 22, .trials = 2, .timeout_s = 300, .device_gib = 24})

struct lint_rule {
    const char *name, *about, *remedy;
};
extern const struct lint_rule lint_rules[]; /* ends with a NULL name */

struct linter;
/* The Python that runs tasks starts with the first of them. ERR_INPUT: an option is no positive number. */
int lint_open(const struct lint_options *o, struct linter **ret, struct err *e);
void lint_close(struct linter *l); /* NULL is fine */
/* A task that cannot be run is a finding ('broken'), not an error. ERR_ENV: no Python, no jail.
 * Another -1: ERR_STOP, or the machine is unfit. */
int lint_task(struct linter *l, const struct task *t, json_t **ret_report, struct err *e);

#endif
