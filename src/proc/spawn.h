/* spawn.h - clone, arrange descriptors, exec: the one place of this module where a process begins. Internal. */
#ifndef MC_SPAWN_H
#define MC_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "proc/jail.h"

struct spawn {
    const char *path; /* no lookup */
    char *const *argv, *const *env;
    const char *cwd;     /* NULL: stay */
    int fds[8], n_fds;   /* become 0, 1, 2, ... of the program; everything else is closed */
    int ns_flags;        /* CLONE_NEW... */
    bool group;          /* a process group of its own */
    bool die_with_us;    /* PDEATHSIG: when the calling thread ends, so does the program */
    const struct jail_cgroup *cgroup; /* joined before exec; NULL: none */
};

/* Returns once the program runs, or -1: exec's failure included. */
int spawn(const struct spawn *s, pid_t *ret_pid, struct err *e);

#endif
