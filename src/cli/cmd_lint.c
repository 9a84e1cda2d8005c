/* cmd_lint.c - 'musacoder lint': which tasks would an answer without work pass, and which mislead a judge? */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "lint/lint.h"

static const struct opt rows[] = {
    {"lint", "max-elements", OPT_INT, "4194304", "a larger task is judged at smaller sizes, batch first"},
    {"lint", "trials", OPT_INT, "2", "trials per input distribution, and of the published protocol"},
    {"lint", "seed", OPT_INT, "0", "seed of inputs and parameters"},
    {"lint", "timeout", OPT_REAL, "300", "seconds for one task"},
    {"lint", "device-gib", OPT_REAL, "24", "memory of the device that the task is meant for, for rule too_large"},
    {"lint", "jail", OPT_CHOICE, "auto", "auto|none: refuse to run unjailed, or run the tasks without a jail"},
    {"lint", "json", OPT_BOOL, "false", "print one report per task as JSON Lines, nothing else"},
    {"lint", "rules", OPT_BOOL, "false", "list the rules and what to do about them"},
    {0},
};

struct paths {
    char **v;
    size_t n;
};

static void lint_paths_add(struct paths *p, char *path)
{
    p->v = xrealloc(p->v, (p->n + 1) * sizeof *p->v);
    p->v[p->n++] = path;
}

/* Adds a folder's *.py. ERR_INPUT: it has none. */
static int lint_add_folder(struct paths *p, const char *folder, struct err *e)
{
    size_t n, before = p->n, k;
    char **names;

    if (dir_list(folder, &names, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        k = strlen(names[i]);
        if (k > 3 && !strcmp(names[i] + k - 3, ".py"))
            lint_paths_add(p, path_join(folder, names[i]));
    }
    names_free(names, n);
    return p->n > before ? 0 : err_set(e, ERR_INPUT, "'%s' holds no .py file", folder);
}

/* Collects the files of all arguments. */
static int lint_collect(const struct opts *o, struct paths *p, struct err *e)
{
    for (int i = 0; i < o->n_args; i++) {
        if (!file_is_dir(o->args[i]))
            lint_paths_add(p, xstrdup(o->args[i]));
        else if (lint_add_folder(p, o->args[i], e) < 0)
            return -1;
    }
    return 0;
}

/* ---- printing ---- */

struct lint_tally {
    bool json;
    int tasks, found, no_tasks; /* no_tasks: files that cannot be linted */
    json_t *rules; /* rule -> number of tasks */
};

/* Counts each rule once for a task. */
static void lint_count_rules(struct lint_tally *t, const json_t *findings)
{
    json_t *seen = json_object();
    const char *rule;
    const json_t *f;
    json_t *one;
    size_t i;

    json_array_foreach(findings, i, f)
        json_object_set_new(seen, json_str(f, "rule", "?"), json_true());
    json_object_foreach(seen, rule, one)
        json_count(t->rules, rule, 1);
    json_decref(seen);
}

/* Prints, in brackets, the sizes at which the task was judged where they are not its own. */
static void lint_print_sizes(const json_t *report)
{
    const json_t *changes = json_object_get(report, "judged_at"), *c;
    size_t i;

    if (json_array_size(changes) == 0)
        return;
    printf(" (judged at");
    json_array_foreach(changes, i, c)
        printf("%s %s = %" PRId64, i ? "," : "", json_str(c, "name", ""), json_i64(c, "to", 0));
    printf(")");
}

/* Prints a report for people. */
static void lint_print_report(const json_t *report)
{
    const json_t *findings = json_object_get(report, "findings"), *f;
    size_t n = json_array_size(findings), i;

    printf("%s: %s", json_str(report, "task", "?"), n ? "" : "clean");
    if (n)
        printf("%zu finding%s", n, n == 1 ? "" : "s");
    lint_print_sizes(report);
    printf("\n");
    json_array_foreach(findings, i, f) {
        printf("  %s%s%s%s: %s\n", json_str(f, "rule", ""), json_str(f, "variant", NULL) ? " (variant " : "",
               json_str(f, "variant", ""), json_str(f, "variant", NULL) ? ")" : "", json_str(f, "message", ""));
        printf("    %s\n", json_str(f, "remedy", ""));
    }
}

/* Prints how many tasks have findings, and a line for each rule that found something. */
static void lint_print_summary(const struct lint_tally *t)
{
    printf("\n%d of %d tasks have findings", t->found, t->tasks);
    if (t->no_tasks)
        printf("; %d file%s no task", t->no_tasks, t->no_tasks == 1 ? " is" : "s are");
    putchar('\n');
    for (const struct lint_rule *r = lint_rules; r->name; r++)
        if (json_i64(t->rules, r->name, 0) > 0)
            printf("  %4" PRId64 "  %-22s  %s\n", json_i64(t->rules, r->name, 0), r->name, r->about);
}

static void lint_print_rules(void)
{
    for (const struct lint_rule *r = lint_rules; r->name; r++)
        printf("%-22s  %s\n%-22s  -> %s\n", r->name, r->about, "", r->remedy);
}

/* Counts a report and prints it, for people or as JSON. */
static int lint_report_one(struct lint_tally *t, const json_t *report, struct err *e)
{
    t->tasks++;
    t->found += json_array_size(json_object_get(report, "findings")) > 0;
    lint_count_rules(t, json_object_get(report, "findings"));
    (t->json ? json_print : lint_print_report)(report);
    return fflush(stdout) || ferror(stdout) ? err_sys(e, "cannot write to standard output") : 0;
}

/* Lints one task file. */
static int lint_one(struct linter *l, const char *path, struct lint_tally *t, struct err *e)
{
    struct task task;
    json_t *report = NULL;
    int rc;

    if (task_read(path, &task, e) < 0)
        return -1;
    rc = lint_task(l, &task, &report, e);
    if (rc == 0)
        rc = lint_report_one(t, report, e);
    json_decref(report);
    task_free(&task);
    return rc;
}

/* Lints all files. Among several, one that is no task is warned about and left out. */
static int lint_all(const struct opts *o, const struct paths *p, struct linter *l, struct err *e)
{
    struct lint_tally t = {.json = opts_bool(o, "json"), .rules = json_object()};
    int rc = 0;

    for (size_t i = 0; i < p->n && rc == 0; i++) {
        rc = lint_one(l, p->v[i], &t, e);
        if (rc < 0 && e->kind == ERR_INPUT && p->n > 1) { /* the others are looked at all the same */
            log_warn("%s; it is left out", e->msg);
            *e = (struct err)ERR_INIT;
            t.no_tasks++;
            rc = 0;
        }
        if (rc == 0 && stop_requested())
            rc = err_set(e, ERR_STOP, "interrupted");
    }
    if (rc == 0 && !t.json && t.tasks + t.no_tasks > 1)
        lint_print_summary(&t);
    json_decref(t.rules);
    return rc < 0 ? -1 : t.found ? EXIT_FAILED : t.no_tasks ? EXIT_USAGE : EXIT_OK;
}

/* The command; an exit code that tells whether anything was found. */
static int lint_run(const struct opts *o, struct err *e)
{
    struct lint_options lo = {.max_elements = opts_int(o, "max-elements"), .trials = (int)opts_int(o, "trials"),
                              .seed = opts_int(o, "seed"), .timeout_s = opts_real(o, "timeout"),
                              .device_gib = opts_real(o, "device-gib"),
                              .no_jail = !strcmp(opts_str(o, "jail"), "none")};
    struct paths p = {0};
    struct linter *l = NULL;
    int rc = -1;

    if (opts_bool(o, "rules")) {
        lint_print_rules();
        return EXIT_OK;
    }
    if (o->n_args == 0)
        return err_set(e, ERR_INPUT, "no task; name files or folders of them");
    if (lint_collect(o, &p, e) == 0 && lint_open(&lo, &l, e) == 0)
        rc = lint_all(o, &p, l, e);
    lint_close(l);
    names_free(p.v, p.n);
    return rc;
}

const struct command cmd_lint = {
    "lint", "which tasks would an answer without work pass?", "TASK.py|FOLDER... [options]",
    "Runs the reference of each task and asks: would zeros, ones, a constant, the input, the last answer or memory "
    "that\n"
    "was never written pass? Would the result pass without one of its operators? Does every input and parameter "
    "matter?\n"
    "Is the output degenerate, not finite, ill-conditioned, random? Would TF32 in the reference use up the tolerance "
    "on\n"
    "a GPU? Do sizes overflow 32-bit indices? What passes is decided by the arithmetic that judges candidates, for\n"
    "protocol strict, and for kernelbench at its tolerances of fp32 (1e-4) and of half precision (1e-2).\n"
    "A finding has a rule, numbers and a remedy; --rules lists the rules, docs/lint.md explains them. No GPU is "
    "needed.\n"
    "Exit code: 0 clean, 1 findings, 2 usage or a file that is no task (the rest is linted), 3 the environment is "
    "unfit.\n\n", rows, lint_run, WORDS_ANY};
