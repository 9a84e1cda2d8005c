/* dl.c - see dl.h. */
#include "base/dl.h"

#include <dlfcn.h>

int dl_load(const char *so, const char *package, const struct dl_name *names, struct err *e)
{
    void *lib = dlopen(so, RTLD_NOW | RTLD_LOCAL);

    if (!lib)
        return err_set(e, ERR_ENV, "'%s' is not installed; apt-get install %s", so, package);
    for (; names->name; names++)
        if (!(*names->at = dlsym(lib, names->name)))
            return err_set(e, ERR_ENV, "'%s' lacks '%s'; apt-get install %s", so, names->name, package);
    return 0;
}
