/* settings.h - which variables of the environment a verdict depends on: one list for the cache's keys, for what a
 * server is known by (identity.h) and for which owner judges (eval/daemon_client.h). Options as variables are not among
 * them: they travel in requests. Inside src/eval only. */
#ifndef MC_EVAL_SETTINGS_H
#define MC_EVAL_SETTINGS_H

#include <stdbool.h>

#include "base/hash.h"

enum settings_of {
    SETTINGS_ANSWER,  /* another value may be another verdict */
    SETTINGS_PROCESS, /* the process that judges must be another; holds those of SETTINGS_ANSWER */
};

/* Adds names and values of all such variables that are set, in order of their names. */
void settings_add(struct sha256 *h, enum settings_of what);

#endif
