/* cmd_warm.c - 'musacoder setup' and 'musacoder warm': what has to be there before the first verdict. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/cli.h"
#include "eval/build/judge_backend.h"

/* setup.sh of the installation: it says what it installs, how large that is, and where. */
static int warm_setup_run(const struct opts *o, struct err *e)
{
    char *script = path_share("setup/setup.sh");

    (void)o;
    if (!file_exists(script)) {
        err_set(e, ERR_ENV, "'%s' is missing; install again", script);
        free(script);
        return -1;
    }
    execl("/bin/sh", "sh", script, (char *)NULL);
    return err_sys(e, "cannot start '%s'", script);
}

static const struct opt none[] = {{0}};

const struct command cmd_setup = {
    "setup", "install what is missing: Python with PyTorch (and Debian packages of the compiler)", "",
    "Runs setup/setup.sh: it says what it installs, how large it is and where, and is quick when nothing is missing.\n"
    "An existing Python with PyTorch >= 2.6 is used where there is one: $MUSACODER_PYTHON, a virtual environment,\n"
    "python3.\n",
    none, warm_setup_run, 0};

/* A verdict on the example makes all that a first verdict makes: precompiled headers, the device inside PyTorch. */
static int warm_run(const struct opts *o, struct err *e)
{
    char *task = path_share("docs/example/task.py"), *kernel = path_share("docs/example/kernel.py");
    char *backend = (char *)opts_str(o, "backend");
    char *argv[] = {"musacoder", "eval", "--backend", backend, "--task", task, kernel, NULL};

    log_info("precompiling headers and importing PyTorch: up to a minute the first time");
    execv("/proc/self/exe", argv);
    free(task), free(kernel);
    return err_sys(e, "cannot start 'musacoder eval'");
}

static const struct opt warm_rows[] = {
    {"warm", "backend", OPT_CHOICE, "sim", BACKEND_WORDS ": which backend to make ready"},
    {0},
};

const struct command cmd_warm = {
    "warm", "make the first verdict quick: precompile headers, try one kernel", "[--backend sim]",
    "Judges the example kernel, so that headers are precompiled and PyTorch is known to work: for container images,\n"
    "CI, and before a training run. Exit codes are those of 'eval'.\n",
    warm_rows, warm_run, 0};
