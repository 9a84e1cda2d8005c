/* kernels_jail.h - what the process in which kernels run may ask of the operating system: memory, its socket, reading
 * the images that it is told to open. No new process, no signal to another one, no file for writing. */
#ifndef MC_EXEC_KERNELS_JAIL_H
#define MC_EXEC_KERNELS_JAIL_H

#include <stdbool.h>

bool kernels_jail(void); /* false where the operating system has no seccomp: the jail of the executor is left */

/* In namespaces of its own (exec.c), before its device is opened: mounts of its own, and on 'sim' memory for its files,
 * which is TMPDIR then. False: it could not. */
bool executor_apart(bool is_sim);
/* What the executor itself gives up once its device is open: programs, sockets, other processes. */
bool executor_jail(void);

#endif
