/* profile.c - see profile.h. */
#include "cli/profile.h"

#include <stdlib.h>
#include <string.h>

#include "device/data_sheet.h"

int profile_use(const struct opts *o, const char *backend, struct err *e)
{
    const char *name = opts_has(o, "profile") ? opts_str(o, "profile") : getenv("MUSACODER_PROFILE");
    const struct data_sheet *p;
    char *text;

    if (!name || !*name)
        return 0;
    if (!(p = data_sheet_find(name))) {
        text = data_sheet_names();
        err_set(e, ERR_INPUT, "no profile '%s'; there are %s", name, text);
        free(text);
        return -1;
    }
    if (backend && strcmp(backend, "sim"))
        return err_set(e, ERR_INPUT, "a profile is for the emulator; leave it out, or use --backend sim");
    text = data_sheet_text(p);
    setenv("MUSACODER_PROFILE", name, 1);
    setenv("SIMT_PROFILE", text, 1);
    free(text);
    return 0;
}
