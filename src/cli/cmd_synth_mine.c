/* cmd_synth_mine.c - 'musacoder synth mine': the modules of a source tree as tasks. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "lint/lint.h"
#include "synth/mine.h"

static const struct opt rows[] = {
    {"mine", "out", OPT_OUT_FOLDER, NULL, "folder to write; needed. An interrupted run continues there"},
    {"mine", "against", OPT_STR, NULL, "folder of tasks that mined ones must not be like: a KernelBench checkout"},
    {"mine", "hints", OPT_STR, NULL, "YAML: what cannot be guessed: MyBlock: {init: [32, 4], inputs: [[8, 32]]}; "
                                     "integers: {shape: [8, 12], dtype: int64, below: 100}"},
    {"mine", "limit", OPT_INT, "0", "classes at most; 0: all"},
    {"mine", "timeout", OPT_REAL, "60", "seconds for one class"},
    {"mine", "lint", OPT_BOOL, "true", "keep only tasks that no answer without work passes"},
    {"mine", "jail", OPT_CHOICE, "auto", "auto|none: refuse to run unjailed, or run the classes without a jail"},
    {"mine", "reasons", OPT_BOOL, "false", "list the reasons of refusals, and stop"},
    {0},
};

static int synth_mine_lint_one(const struct task *t, json_t **ret, void *ctx, struct err *e)
{
    return lint_task(ctx, t, ret, e);
}

/* Prints the reasons why a class became no task: all of them (n NULL), or those that occurred, with their counts. */
static void synth_mine_print_reasons(const struct mine_stats *n)
{
    for (const struct mine_reason *r = mine_reasons; r->name; r++)
        if (!n)
            printf("%-22s %s\n", r->name, r->about);
        else if (json_i64(n->reasons, r->name, 0))
            printf("  %5" PRId64 "  %-22s %s\n", json_i64(n->reasons, r->name, 0), r->name, r->about);
}

/* The command; an exit code, or -1 with e. */
static int synth_mine_mine(const struct opts *o, struct err *e)
{
    struct lint_options lo = LINT_OPTIONS_DEFAULT;
    struct mine_options m = {.tree = o->n_args == 1 ? o->args[0] : NULL, .out = opts_str(o, "out"),
                             .hints = opts_str(o, "hints"), .against = opts_str(o, "against"),
                             .limit = (int)opts_int(o, "limit"), .timeout_s = opts_real(o, "timeout"),
                             .no_jail = !strcmp(opts_str(o, "jail"), "none")};
    struct mine_stats n = {0};
    struct linter *l = NULL;
    int rc = 0;

    if (opts_bool(o, "reasons"))
        return synth_mine_print_reasons(NULL), EXIT_OK;
    if (!m.tree || !m.out)
        return err_set(e, ERR_INPUT, m.tree ? "no output folder; give --out DIR"
                                            : "say one folder: synth mine DIR --out OUT");
    if (opts_check_outside(o, "out", e) < 0)
        return -1;
    if (!(m.timeout_s > 0) || m.limit < 0)
        return err_set(e, ERR_INPUT, "--timeout and --limit must be positive");
    lo.trials = 1, lo.no_jail = m.no_jail;
    if (opts_bool(o, "lint"))
        rc = lint_open(&lo, &l, e);
    m.lint = l ? synth_mine_lint_one : NULL, m.ctx = l;
    if (!rc)
        rc = mine_tree(&m, &n, e);
    lint_close(l);
    if (!rc) {
        printf("%s: %d task%s of %d class%s in %d file%s (%d were known), %d refused\n", m.out, n.tasks,
               buf_plural(n.tasks), n.classes, n.classes == 1 ? "" : "es", n.files, buf_plural(n.files), n.before,
               n.classes - n.tasks);
        synth_mine_print_reasons(&n);
        if (n.classes > n.tasks)
            printf("%s/mined.jsonl names each class and why it was refused\n", m.out);
        if (n.tasks)
            printf("next: musacoder synth teach --teacher URL --tasks %s/tasks --out FOLDER, or bench --tasks\n",
                   m.out);
    }
    json_decref(n.reasons);
    return rc ? -1 : EXIT_OK;
}

const struct command cmd_synth_mine = {
    "synth mine", "tasks from the nn.Module classes of a source tree",
    "DIR --out OUT [--against KERNELBENCH] [--hints FILE]",
    "Reads every .py file under DIR. Each class that derives from nn.Module, with what it needs from its file,\n"
    "becomes a task in KernelBench format: constructor arguments are guessed by name, input shapes are inferred from\n"
    "the layers that it builds, and the first that runs is taken. Dropout is switched off where the constructor lets\n"
    "us. A class that is no task is refused with a named reason (--reasons). What cannot be guessed is said in\n"
    "--hints. Files are parsed and classes run in the jail, without network; nothing of the tree is imported.\n"
    "OUT/tasks holds the tasks, OUT/mined.jsonl a line for each class, OUT/report.json the counts. Give OUT/tasks to\n"
    "'agent' or 'bench --tasks'. The licence of what is mined is that of the tree: look before use.\n"
    "Exit code: 0 done, 2 usage, 3 no Python or no jail.\n\n",
    rows, synth_mine_mine, 1};
