/* run.h - a recipe as a list of stages, each one a command in its own folder of the run.
 *
 * A stage's key is a hash of its resolved options and of the keys of the stages before it. stages/NAME.json holds
 * the key, a hash of the contents that the stage reads, whether it is done and the seconds it took: a stage with
 * the same key and contents is not run again, one that was stopped continues in its folder, one with others starts
 * anew, if it took no more than RUN_DEAR_S or --anew is given. Only folders of ours (base/folder.h) are emptied. */
#ifndef MC_CLI_RUN_H
#define MC_CLI_RUN_H

#include <jansson.h>

#include "base/err.h"
#include "cli/cli.h"

extern const struct command cmd_scratch;

#define RUN_DEAR_S 600.0
#define RUN_EMPTYING "-" /* the key while a folder is emptied: no options are those of what is left in it */

struct run_stage {
    char *name;      /* "sft", "bench_sft" */
    const struct command *command;
    char *dir;       /* of its outputs */
    struct opts opts;
    char key[65];
};

struct run_marker {
    char key[65];
    char inputs[65]; /* what the stage read when it last began (content.h); "" in markers of older versions */
    char result[65]; /* what tells its result from another run's; "" in markers of older versions */
    bool done;
    double seconds;
};

/* Key "" when there is none. ERR_ENV where it is damaged: what it stood for may be a finished stage. */
int run_marker_read(const char *out, const char *name, struct run_marker *ret, struct err *e);
int run_marker_write(const char *out, const char *name, const struct run_marker *m, struct err *e);

/* Runs f(ctx) while a thread adds the time to the marker every few seconds, so that a killed run loses little of its
 * count. Writes done on success, with what 'result' then says of it. Returns what f returned. */
int run_timed(const char *out, const char *name, struct run_marker *m, int (*f)(void *ctx, struct err *e),
              void (*result)(const void *ctx, char ret[65]), void *ctx, struct err *e);

/* A file in a stage's folder, but for its model, that the stage's command did not write, or that is not as it was
 * written: a user's. Folders of older versions, which say nothing of what they hold, have none. Owned, or NULL. */
char *run_stage_foreign(const char *dir);

#endif
