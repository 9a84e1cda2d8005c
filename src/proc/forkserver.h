/* forkserver.h - Python with torch imported once; every candidate and reference runs in a forked, jailed child of it.
 *
 * The server (runner/main.py) keeps one thread and never runs a tensor operation. A spawned child serves one socket:
 * the judge's end is child->fd, spoken in frames (proc/frame.h). The child holds that socket, /dev/null and a capped
 * output pipe, nothing else; a local cache of Hugging Face models may be read, for tasks that build their models from
 * it, without network. Roles are rows of a table in runner/main.py: role -> module and function, called with
 * the socket and the spawn's args. Thread-safe: any thread may spawn, wait and kill. */
#ifndef MC_FORKSERVER_H
#define MC_FORKSERVER_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "proc/jail.h"
#include "proc/proc.h"

struct forkserver;

struct forkserver_spec {
    const char *python;     /* NULL: path_python() */
    const char *const *env; /* extra "KEY=VALUE" (LD_PRELOAD of the device's allocator, ...); may be NULL */
    const char *device;     /* package of runner/ that stands for the GPU: "sim" (NULL means it), "cuda" */
    const char *const *ro;  /* folders that every child may read besides Python's own and runner/; may be NULL */
    bool no_jail;           /* children run unjailed: --jail none */
    bool compiles;          /* its children use torch.compile: what that imports is imported once too (seconds) */
};

/* Starts the server and waits until torch is imported (seconds). Fails if the jail is not strong enough. */
int forkserver_start(const struct forkserver_spec *s, struct forkserver **ret, struct err *e);
/* The same without the waiting, which the first spawn does: until then there is no info. */
int forkserver_launch(const struct forkserver_spec *s, struct forkserver **ret, struct err *e);
/* Kills all children; NULL is fine. Children that were spawned stay valid (they have ended) until child_free. */
void forkserver_stop(struct forkserver *fs);
/* For threads that spawn while another may stop it: hold before the spawn, drop after it. */
struct forkserver *forkserver_hold(struct forkserver *fs);
void forkserver_drop(struct forkserver *fs);
bool forkserver_alive(struct forkserver *fs);
/* {"python","torch","numpy","device","jail":[...],"import_s"}; lives as long as fs. */
const json_t *forkserver_info(struct forkserver *fs);

struct child_spec {
    const char *role;      /* "candidate", "reference", "shrink" */
    json_t *args;          /* handed to the role's function; borrowed, may be NULL */
    struct jail_spec jail; /* zeroed: defaults; ro and rw are added to the server's */
    bool may_exec;         /* it may start programs that its jail shows: compilers. For roles that run no candidate */
    size_t max_output;     /* kept bytes of stdout and stderr together; 0 = 64 KiB; more is read and dropped */
};

struct child {
    int fd; /* the judge's end; closed by child_free (or set to -1 by who takes it) */
    pid_t pid;
    int id;
    double spawn_s; /* request to running, seconds */
    struct forkserver *fs;
};

struct child_end {
    enum proc_why why; /* PROC_EXITED, PROC_SIGNALED, PROC_MEMORY, or PROC_STOPPED after child_kill */
    int code, signal;
    /* It was killed, but not by us and not at its own limit: by the kernel, because the machine had no memory left? Its
     * cgroup tells; where there is none, the kernel has killed somebody for memory meanwhile, or does not say. */
    bool outside;
    double cpu_s;
    size_t max_rss;
    /* bytes that it had at most: as its cgroup says, else seen resident, less what the server shares; 0: not known */
    size_t peak;
    struct buf output; /* stdout and stderr as they came; freed by the caller */
};

int forkserver_spawn(struct forkserver *fs, const struct child_spec *s, struct child **ret, struct err *e);
/* 0 when the child has ended; -1 if it is still there at the deadline (now_s() value, 0 = for ever), or if the server
 * died and nobody knows (forkserver_alive tells). May be called again; ret (may be NULL) is filled once. */
int child_wait(struct child *c, double deadline, struct child_end *ret, struct err *e);
void child_kill(struct child *c); /* the whole jail; returns at once, child_wait tells */
void child_free(struct child *c); /* kills if still running, and forgets it; NULL is fine */

#endif
