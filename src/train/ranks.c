/* ranks.c - see ranks.h. */
#include "train/ranks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

#define GRACE_S 20 /* between asking the other ranks to end and ending them */

static int ranks_number_of(const char *name, int otherwise)
{
    const char *text = getenv(name);

    return text && *text ? atoi(text) : otherwise;
}

int ranks_read(struct ranks *ret, struct err *e)
{
    ret->rank = ranks_number_of("RANK", 0);
    ret->world = ranks_number_of("WORLD_SIZE", 1);
    ret->local = ranks_number_of("LOCAL_RANK", ret->rank);
    if (ret->world < 1 || ret->rank < 0 || ret->rank >= ret->world || ret->local < 0)
        return err_set(e, ERR_INPUT, "RANK %d, LOCAL_RANK %d and WORLD_SIZE %d do not fit together", ret->rank,
                       ret->local, ret->world);
    if (ret->world > 1 && !getenv("MUSACODER_COMM_FD"))
        return err_set(e, ERR_INPUT, "WORLD_SIZE is %d; start ranks with 'musacoder launch -- COMMAND'", ret->world);
    return 0;
}

/* Reads the communicator's id that the first rank wrote. */
static int ranks_read_id(unsigned char *id, struct err *e)
{
    ssize_t n = read(ranks_number_of("MUSACODER_COMM_FD", -1), id, MODEL_COMM_ID);

    return n == MODEL_COMM_ID ? 0 : err_set(e, ERR_ENV, "the launcher ended before it named the group");
}

int ranks_place(const struct ranks *r, struct model *m, const char *device, const char *dtype, struct err *e)
{
    unsigned char id[MODEL_COMM_ID];
    char own[32];

    if (r->world > 1 && !strcmp(device, "cuda")) {
        snprintf(own, sizeof own, "cuda:%d", r->local);
        device = own;
    }
    if (model_to_device(m, device, dtype, e) < 0)
        return -1;
    if (r->world == 1)
        return 0;
    return ranks_read_id(id, e) < 0 ? -1 : model_join(m, id, r->rank, r->world, e);
}

/* ---- the launcher ---- */

/* Sets an environment variable to a number. */
static void ranks_set_number(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

/* In the child. NCCL's multicast is off: it needs a fabric that many hosts lack or refuse. */
static void ranks_become(int rank, int n, int fd, char **args, int n_args)
{
    char **argv = xcalloc((size_t)n_args + 2, sizeof *argv);

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    ranks_set_number("RANK", rank);
    ranks_set_number("LOCAL_RANK", rank);
    ranks_set_number("WORLD_SIZE", n);
    ranks_set_number("MUSACODER_COMM_FD", fd);
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    setenv("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1", 1);
    setenv("NVSHMEM_DISABLE_NVLS", "1", 1);
    argv[0] = xstrdup("musacoder");
    memcpy(argv + 1, args, (size_t)n_args * sizeof *argv);
    execv("/proc/self/exe", argv);
    _exit(127);
}

/* Starts n processes of this command, which find each other by one identity. */
static int ranks_start(pid_t *pid, int n, const char *device, char **args, int n_args, struct err *e)
{
    unsigned char id[MODEL_COMM_ID];
    int fd[2];

    setenv("NCCL_NVLS_ENABLE", "0", 1); /* the identity is made here, by the same library */
    if (model_comm_id(device, id, e) < 0)
        return -1;
    if (pipe(fd) < 0)
        return err_sys(e, "pipe");
    for (int i = 0; i < n; i++) {
        if (write(fd[1], id, sizeof id) != (ssize_t)sizeof id)
            return err_sys(e, "pipe");
        if ((pid[i] = fork()) == 0)
            ranks_become(i, n, fd[0], args, n_args);
        if (pid[i] < 0)
            return err_sys(e, "fork");
    }
    close(fd[0]);
    close(fd[1]);
    return 0;
}

static void ranks_end_all(const pid_t *pid, int n, int sig)
{
    for (int i = 0; i < n; i++)
        if (pid[i] > 0)
            kill(pid[i], sig);
}

/* The exit code of a status, as a shell has it. */
static int ranks_code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

int ranks_launch(int n, const char *device, char **args, int n_args, int *ret_code, struct err *e)
{
    pid_t *pid = xcalloc((size_t)n, sizeof *pid);
    int left = n, rc = ranks_start(pid, n, device, args, n_args, e);
    double asked = 0;

    *ret_code = 0;
    if (rc < 0)
        ranks_end_all(pid, n, SIGKILL);
    while (rc == 0 && left) {
        int status;
        pid_t p = waitpid(-1, &status, WNOHANG);
        for (int i = 0; p > 0 && i < n; i++)
            if (pid[i] == p) {
                pid[i] = 0;
                left--;
                if (ranks_code_of(status) && !*ret_code) {
                    *ret_code = ranks_code_of(status);
                    log_error("rank %d ended with code %d; the others are asked to end", i, *ret_code);
                    ranks_end_all(pid, n, SIGTERM);
                    asked = now_s();
                }
            }
        if (asked && now_s() - asked > GRACE_S)
            ranks_end_all(pid, n, SIGKILL);
        if (p <= 0)
            usleep(20000);
    }
    free(pid);
    return rc;
}
