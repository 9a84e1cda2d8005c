/* jail.h - what a candidate, or a compiler fed with a candidate's source, is allowed to see and use.
 *
 * A jail is made in two steps, after bubblewrap: a spec becomes a plan (plain text, one operation a line, printable
 * and testable), then the plan is carried out by build/lib/mcjail (process 1 of the new namespaces) and by the
 * jailed process itself just before foreign code runs (build/lib/libjail.so, for the Python fork server).
 *
 * Layers: user (when not root), mount, pid, network, IPC and UTS namespaces; a root of read-only binds with a private,
 * capped /tmp; a dropped uid (when root) and no capabilities; no_new_privs; Landlock; a seccomp filter; rlimits;
 * memory and pids cgroups (v1 or v2), else a watch on resident memory. Each is probed once; what does not hold is
 * left out and said (jail_probe, 'musacoder doctor'). Killing a jail kills every process in it. */
#ifndef MC_JAIL_H
#define MC_JAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

enum jail_layer {
    JAIL_ROOT = 1 << 0,       /* we are root and may change uid: no user namespace is needed */
    JAIL_USERNS = 1 << 1,     /* unprivileged user namespaces work */
    JAIL_NAMESPACES = 1 << 2, /* mount, pid, net, ipc, uts namespaces and pivot_root work */
    JAIL_LANDLOCK = 1 << 3,
    JAIL_SECCOMP = 1 << 4,
    JAIL_CGROUP_MEMORY = 1 << 5,
    JAIL_CGROUP_PIDS = 1 << 6,
    JAIL_PROCFS = 1 << 7, /* a fresh /proc can be mounted inside */
};

struct jail_layers {
    unsigned held; /* bits of enum jail_layer */
    int landlock_abi;
    int cgroup;        /* 0 none, 1, 2 */
    bool enough;       /* strong enough to run foreign code */
    char missing[512]; /* why not enough or which layers are missing, with the remedy; "" when all hold */
};

/* Tries the layers for real (forks small children; about 20 ms) and remembers the answer. Never fails. */
const struct jail_layers *jail_probe(void);
const char *jail_layer_name(unsigned bit); /* "seccomp", NULL past the last; bit = 1, 2, 4 ... */

#define JAIL_MEMORY ((size_t)1 << 30)

struct jail_spec {
    const char *const *ro; /* extra files and folders shown read-only at their own path; NULL-terminated, may be NULL */
    const char *const *rw; /* folders shown writable; given (chown) to the jail's uid when we are root */
    /* device nodes that may be read, written and asked (ioctl); NULL-terminated, may be NULL. Also lets threads name
     * themselves (/proc/self/task), which CUDA insists on */
    const char *const *devices;
    const char *cwd;       /* default "/tmp" */
    size_t memory_bytes;   /* 0 = JAIL_MEMORY; resident, all processes together */
    size_t tmp_bytes;      /* 0 = 64 MiB; counts as memory too */
    size_t file_bytes;     /* 0 = 256 MiB; largest single file */
    int pids;              /* 0 = 64; processes and threads */
    int cpu_s;             /* 0 = no limit; CPU seconds per process */
    bool no_exec;          /* no programs and no further processes, only threads (a candidate; not a compiler) */
};

/* Appends the plan. Missing entries of ro are left out silently only if they are of the standard set (/usr, ...). */
int jail_plan(const struct jail_spec *s, const struct jail_layers *l, struct buf *ret_plan, struct err *e);

/* A cgroup for one jail; where none can be made, path is empty, all is a no-op, and memory is watched by polling. */
struct jail_cgroup {
    char memory[256], pids[256]; /* the same folder under v2; "" when not held */
};
void jail_cgroup_make(struct jail_cgroup *g, size_t memory_bytes, int pids);
int jail_cgroup_add(const struct jail_cgroup *g, pid_t pid); /* async-signal-safe */
/* bytes that it held at most; 0: the kernel does not tell */
size_t jail_cgroup_peak(const struct jail_cgroup *g);
/* How many of its members the kernel has killed for memory, at its limit or because the machine had none; -1: it does
 * not tell. */
long jail_cgroup_kills(const struct jail_cgroup *g);
void jail_cgroup_remove(struct jail_cgroup *g);
int jail_cgroup_version(void); /* 0, 1 or 2 */

/* The folder of mcjail and libjail.so: lib/ of the build folder that holds the running binary. Owned; NULL if
 * absent. */
char *jail_tool_folder(void);

/* Starts mcjail as process 1 of new namespaces. It carries out the plan's outer half, then either runs argv (with the
 * inner half applied) or, argv NULL, keeps the namespaces open for jail_enter. in/out/err: descriptors to inherit
 * (-1: /dev/null). *ret_status: a pipe on which mcjail writes "ready\n", "error TEXT\n" and "exit WAITSTATUS\n". */
int jail_start(const char *plan, size_t n_plan, char *const *argv, char *const *env, const int stdio[3],
               const struct jail_cgroup *g, pid_t *ret_pid, int *ret_status, struct err *e);
/* In a forked, single-threaded process: join the namespaces of box (a pid from jail_start). The next fork is inside. */
int jail_enter(pid_t box, struct err *e);
/* fork() of a single-threaded process into the namespaces of box: 0 in the child, which is the caller's own though it
 * is inside; -1 with e. The process that joins the namespaces copies no page tables and has ended on return. */
pid_t jail_fork(pid_t box, struct err *e);
/* In that fork: rlimits, uid, capabilities, no_new_privs, Landlock, seccomp. There is no way back. */
int jail_close(const char *plan, size_t n_plan, struct err *e);

/* Resident bytes of all processes that share box's pid namespace (for the watch where cgroups do not hold). */
size_t jail_resident(pid_t box);

#endif
