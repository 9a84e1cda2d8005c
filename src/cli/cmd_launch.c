/* cmd_launch.c - 'musacoder launch': one command as several ranks, a GPU each. */
#include "cli/cli.h"
#include "train/ranks.h"

static const struct opt rows[] = {
    {"launch", "n", OPT_INT, "1", "ranks; each gets the GPU of its number"},
    {"launch", "device", OPT_CHOICE, "cuda", "cuda|sim: what the ranks meet on; sim for tests on a CPU"},
    {0},
};

/* The command; the exit code of its processes, or -1 with e. */
static int launch_run(const struct opts *o, struct err *e)
{
    int n = (int)opts_int(o, "n"), code;

    if (n < 1 || n > RANKS_MAX || !o->n_args)
        return err_set(e, ERR_INPUT, "launch wants --n from 1 to %d, then '--' and a command", RANKS_MAX);
    if (ranks_launch(n, opts_str(o, "device"), o->args, o->n_args, &code, e) < 0)
        return -1;
    return code;
}

const struct command cmd_launch = {
    "launch", "run a training command on several GPUs of this host", "--n N -- sft --device cuda ...",
    "Starts the command N times as ranks of one group. Every rank holds the whole model and takes its share of each\n"
    "batch; NCCL sums the gradients before the step, and the loss is per token of the whole batch. Rank 0 writes the\n"
    "run folder. A rank that fails ends the others.\n",
    rows, launch_run, WORDS_ANY};
