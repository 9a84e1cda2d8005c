/* secret.h - the option 'secret' of all commands that judge: what the judge's draws depend on besides their seed.
 *
 * Without it every machine (cache folder) has a secret of its own, so that a program cannot know its inputs; two
 * machines then judge the same programs on other draws. A replay on another machine gives the same secret to both. */
#ifndef MC_CLI_SECRET_H
#define MC_CLI_SECRET_H

#include "base/opt.h"

#define SECRET_ROW(section) \
    {section, "secret", OPT_STR, NULL, "HEX or FILE that the judge's draws depend on, for replays on another machine " \
                                       "(default: a secret of this machine)"}

/* Hands the option's secret to the judge (ours and the workers', by MUSACODER_SECRET), and leaves a fingerprint in the
 * option's place: run folders tell two secrets apart without holding them. Nothing to do when it is unset. */
int secret_use(const struct opts *o, struct err *e);

/* As secret_use leaves it: "sha256:" and 16 digits. Nothing when 'secret' is unset or is one already. */
int secret_hide(json_t *values, struct err *e);

#endif
