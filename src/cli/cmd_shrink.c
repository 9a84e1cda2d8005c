/* cmd_shrink.c - 'musacoder shrink': a task of GPU size becomes one that the emulator can run. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/cli.h"
#include "lint/shrink.h"

static const struct opt rows[] = {
    {"shrink", "max-elements", OPT_INT, "65536", "no input, output or parameter may have more elements"},
    {"shrink", "out", OPT_OUT_FILE, NULL, "write the task to this file instead of standard output"},
    {"shrink", "jail", OPT_CHOICE, "auto", "auto|none: refuse to run unjailed, or run the task without a jail"},
    {0},
};

/* Logs each change and what it made of the largest tensor. */
static void shrink_say(const struct shrunk *s)
{
    const json_t *c;
    size_t i;

    if (json_array_size(s->changes) == 0)
        log_info("nothing to change: the largest tensor has %" PRId64 " elements", s->after);
    json_array_foreach(s->changes, i, c)
        log_info("line %" PRId64 ": %s = %" PRId64 " (was %" PRId64 ")", json_i64(c, "line", 0),
                 json_str(c, "name", ""), json_i64(c, "to", 0), json_i64(c, "from", 0));
    if (json_array_size(s->changes))
        log_info("largest tensor: %" PRId64 " elements (was %" PRId64 ")", s->after, s->before);
}

/* The command; an exit code, or -1 with e. */
static int shrink_run(const struct opts *o, struct err *e)
{
    struct task t;
    struct shrunk s = {0};
    int rc = -1;

    if (o->n_args != 1)
        return err_set(e, ERR_INPUT, "name one task file");
    if (task_read(o->args[0], &t, e) < 0)
        return -1;
    if (shrink_task(&t, opts_int(o, "max-elements"), !strcmp(opts_str(o, "jail"), "none"), &s, e) == 0) {
        shrink_say(&s);
        if (opts_has(o, "out"))
            rc = file_write(opts_str(o, "out"), s.source, strlen(s.source), e);
        else
            rc = fputs(s.source, stdout) < 0 || fflush(stdout) ||
                ferror(stdout) ? err_sys(e, "cannot write to standard output") : 0;
    }
    shrunk_free(&s);
    task_free(&t);
    return rc < 0 ? -1 : EXIT_OK;
}

static void shrink_list_reads(const struct opts *o, struct opt_reads *ret)
{
    if (o->n_args)
        opt_reads_add(ret, task_sidecar_path(o->args[0]));
}

const struct command cmd_shrink = {
    "shrink", "make a big task small enough for the emulator", "TASK.py [--max-elements N] [--out FILE]",
    "Rewrites the module-level sizes of a KernelBench-format task until no input, output or parameter has more than N\n"
    "elements, checks that constructor and reference still run, and prints the task. What was changed goes to stderr.\n"
    "Exit code: 0 done, 2 usage or a file that is no task, 3 --out cannot be written or the environment is unfit.\n\n",
    rows, shrink_run, 1, NULL, shrink_list_reads};
