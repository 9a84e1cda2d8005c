/* cli.h - a command is one file cmd_NAME.c with one descriptor, and one row in main.c's table.
 *
 * To add a command: write cmd_NAME.c ending in 'const struct command cmd_NAME', declare it below, add it to the
 * table. The adapter parses nothing itself and holds no logic: its rows say into which field of the module's options
 * a value goes (INTO, opts_store), it calls one module, prints, returns a code. */
#ifndef MC_CLI_H
#define MC_CLI_H

#include "base/err.h"
#include "base/opt.h"

#ifndef MC_VERSION
#define MC_VERSION "unknown" /* the Makefile gives that of the file VERSION */
#endif

enum exit_code { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_UNFIT = 3, EXIT_STOPPED = 130 };

struct command {
    const char *name;
    const char *summary;    /* one line, for 'musacoder help' */
    const char *usage;      /* "[--json] CANDIDATE..." */
    const char *about;      /* what -h teaches, before the options; ends with a newline */
    const struct opt *rows; /* ends with a NULL name */
    int (*run)(const struct opts *o, struct err *e); /* an exit code; -1 means 'see *e' */
    int words; /* that are no options: so many at most; main refuses more. The command checks that there are enough */
    /* What run() would refuse of these options, said before: touches neither a machine nor what other stages of a
     * recipe make. NULL: nothing. */
    int (*check)(const struct opts *o, struct err *e);
    /* What it reads besides its words and options, so that no result takes its place. NULL: nothing. */
    void (*reads)(const struct opts *o, struct opt_reads *ret);
};

#define WORDS_ANY (-1)

extern const struct command
    cmd_agent, cmd_bench, cmd_card, cmd_doctor, cmd_eval, cmd_export, cmd_generate, cmd_help, cmd_import,
    cmd_init, cmd_lint, cmd_logits, cmd_profile, cmd_replay, cmd_rft,
    cmd_rl, cmd_run, cmd_serve, cmd_sft, cmd_shrink, cmd_synth,
    cmd_tokenize, cmd_translate, cmd_version, cmd_watch, cmd_worker;
extern const struct command cmd_completion, cmd_explain, cmd_man, cmd_mcp, cmd_schema, cmd_setup, cmd_tasks,
    cmd_warm;
extern const struct command cmd_launch, cmd_owner, cmd_synth_diagnose, cmd_synth_mine,
    cmd_synth_profile, cmd_synth_teach;

extern const char build_stamp[]; /* "musacoder VERSION (commit HASH)" */

#endif
