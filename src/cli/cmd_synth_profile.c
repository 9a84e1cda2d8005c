/* cmd_synth_profile.c - 'musacoder synth profile': figures of ncu as questions and answers. */
#include <stdio.h>

#include "cli/cli.h"
#include "synth/ncu.h"

static const struct opt rows[] = {
    {"profile", "out", OPT_OUT_FOLDER, NULL, "folder to write; needed"},
    {0},
};

/* The command; an exit code, or -1 with e. */
static int ncu_synth_run(const struct opts *o, struct err *e)
{
    struct ncu_stats n;

    if (o->n_args != 1 || !opts_has(o, "out"))
        return err_set(e, ERR_INPUT, "say one folder and --out OUT: synth profile FOLDER --out OUT");
    if (ncu_records(o->args[0], opts_str(o, "out"), &n, e) < 0)
        return -1;
    printf("%s: %d kernels of %d files: %d bound by memory, %d by compute, %d by waiting, %d not told\n",
           opts_str(o, "out"), n.kernels, n.files, n.memory, n.compute, n.latency, n.unknown);
    printf("next: musacoder sft --model DIR --data %s/data,MORE --out RUN\n", opts_str(o, "out"));
    return EXIT_OK;
}

const struct command cmd_synth_profile = {
    "synth profile", "records from what ncu says of kernels", "FOLDER --out OUT",
    "FOLDER has NAME.csv and NAME.py: figures of Nsight Compute, and the program that they are of; and NAME.task\n"
    "where the record shall hold the task too (lab/profile_records.py makes such a folder). On a machine with\n"
    "a GPU 'musacoder eval --capsule FILE' keeps a judged program's kernels, and 'musacoder replay FILE --profile\n"
    "NAME.csv' writes the figures. Each kernel becomes a record of kind 'profile': the program and its figures, and\n"
    "what limits it, by rules that src/synth/ncu.h states: 60 percent of a peak limit a kernel, below that it waits.\n"
    "The answer says no number that the CSV lacks.\n"
    "Exit code: 0 done, 2 usage or a CSV that is not ncu's, 3 --out cannot be written.\n\n",
    rows, ncu_synth_run, 1};
