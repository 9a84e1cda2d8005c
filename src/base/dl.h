/* dl.h - a shared library that is looked for when it is needed: without it everything else works. */
#ifndef MC_DL_H
#define MC_DL_H

#include "base/err.h"

struct dl_name {
    const char *name; /* of a function */
    void **at;        /* where its address goes */
};

/* Loads 'so' (never unloaded) and fills the table, which ends with a row of NULL. ERR_ENV names what is missing and the
 * Debian package that brings it. Any number of threads may call it. */
int dl_load(const char *so, const char *package, const struct dl_name *names, struct err *e);

#endif
