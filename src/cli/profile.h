/* profile.h - the option 'profile' of commands that judge on the emulator: the device whose limits and
 * properties it shows. Verdicts say so in environment.emulated. */
#ifndef MC_CLI_PROFILE_H
#define MC_CLI_PROFILE_H

#include "base/opt.h"

#define PROFILE_ROW(section) \
    {section, "profile", OPT_STR, NULL, "sim: emulate this device's limits ('musacoder profile' lists them)"}

/* Hands the option to the judge, its workers and the emulator, by MUSACODER_PROFILE and SIMT_PROFILE. ERR_INPUT:
 * no such profile, or another backend than sim. backend may be NULL: sim. Nothing to do when the option is
 * unset. */
int profile_use(const struct opts *o, const char *backend, struct err *e);

#endif
