/* proc.h - run a program: explicit environment, captured output with caps, a deadline, and no survivors.
 *
 * The program gets its own process group (without a jail) or its own pid namespace and cgroup (with one), and dies
 * with us (PDEATHSIG). Whatever ends it, every process that it left behind is killed before proc_end returns.
 * Safe to call from several threads; without a jail a program also ends when the thread that started it ends. */
#ifndef MC_PROC_H
#define MC_PROC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "proc/jail.h"

enum proc_why {
    PROC_EXITED,   /* code says how */
    PROC_SIGNALED, /* signal says which */
    PROC_TIMEOUT,  /* we killed it: timeout_s passed, or RUN_CLOCK_MOST times as long with little of a processor */
    PROC_OUTPUT,   /* we killed it: more output than allowed and output_kills was set */
    PROC_MEMORY,   /* the memory limit of its jail was reached */
    PROC_STOPPED   /* we killed it: Ctrl-C, or proc_kill */
};

struct proc_spec {
    char *const *argv;           /* argv[0] is looked up in PATH of the sanitised environment */
    const char *const *env;      /* "KEY=VALUE" added to the sanitised environment; NULL-terminated, may be NULL */
    const char *cwd;             /* NULL: ours, or the jail's */
    const void *in;              /* standard input; NULL: /dev/null */
    size_t n_in;
    size_t max_out, max_err;     /* kept bytes; 0 = 1 MiB each. More is read and dropped (buf.cut says so) */
    bool output_kills;           /* reaching a cap ends the program with PROC_OUTPUT */
    double timeout_s;            /* seconds, those apart in which it waited for a processor; 0 = none */
    const struct jail_spec *jail; /* NULL: not jailed */
};

struct proc_result {
    enum proc_why why;
    int code, signal;
    struct buf out, err; /* freed by proc_result_free */
    double wall_s, cpu_s;
    size_t max_rss; /* bytes, of its largest process */
};

/* Runs to the end. Returns -1 only if it could not be started (no such program, no jail): then nothing to free. */
int proc_run(const struct proc_spec *s, struct proc_result *ret, struct err *e);
void proc_result_free(struct proc_result *r);
/* "exit code 3", "signal 11 (Segmentation fault)", "stopped after 10.0 s", ... for messages; static per thread. */
const char *proc_result_text(const struct proc_result *r);

/* The same in three steps, for pools: start many, poll them together, end each once proc_poll says it is done. */
struct proc;
int proc_start(const struct proc_spec *s, struct proc **ret, struct err *e); /* copies what it needs */
/* Waits until some process of ps (NULL entries skipped) has ended, at most wait_s. Returns its index, or -1. */
int proc_poll(struct proc *const *ps, int n, double wait_s);
void proc_kill(struct proc *p);
/* Kills if still running; frees p. -1 as proc_run: its jail or the program in it could not be started. */
int proc_end(struct proc *p, struct proc_result *ret, struct err *e);

/* PATH, HOME=/tmp, LANG=C.UTF-8, TMPDIR=/tmp and nothing else of ours, then 'extra'. Caller frees with names_free. */
char **proc_env(const char *const *extra, size_t *ret_n);
/* Where that PATH has the program, or name itself if it holds a slash. Caller frees; NULL if it is nowhere. */
char *proc_find(const char *name);

/* The jail for a compiler: no network, /usr and the given folders read-only, one writable folder, exec allowed. */
struct jail_spec proc_jail_compiler(const char *const *ro, const char *const *rw);

#endif
