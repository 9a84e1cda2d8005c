/* jail_apply.h - the operations of a jail's plan. Used by mcjail, jail.c and jail_probe.c; nobody else.
 *
 * A plan is lines of tab-separated fields. The outer half runs in process 1 of the new namespaces:
 *   ns LIST | root BYTES | tmpfs PATH BYTES MODE | dir PATH | ro SRC DST | rw SRC DST UID | dev PATH | proc PATH |
 *   link TARGET PATH | file PATH TEXT | seal
 * the inner half in the jailed process itself:
 *   cwd PATH | limit NAME VALUE | uid N | caps | nnp | landlock ABI RW... | seccomp exec|noexec */
#ifndef MC_JAIL_APPLY_H
#define MC_JAIL_APPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define JAIL_MAX_FIELDS 40

/* Calls f for each line with its fields (NUL-terminated copies); stops at the first -1. */
int plan_each(const char *plan, size_t n, int (*f)(int argc, char **argv, void *ctx, struct err *e), void *ctx,
              struct err *e);
int jail_outer(const char *plan, size_t n, struct err *e);
int jail_inner(const char *plan, size_t n, struct err *e);
int jail_landlock_abi(void); /* 0 when the kernel has none */
bool jail_seccomp_holds(void); /* of jail_probe.c: does the seccomp line load? The caller stays without a filter */

#endif
