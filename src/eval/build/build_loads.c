/* build_loads.c - can this machine load what its compiler made? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "eval/build/build.h"
#include "proc/proc.h"

bool build_loads(const char *so)
{
    char *argv[] = {"ldd", (char *)so, NULL}, path[4096], *ours = path_lib_folder();
    const char *env[] = {"LC_ALL=C", path, NULL}, *libraries = getenv("LD_LIBRARY_PATH");
    struct proc_spec s = {.argv = argv, .env = env, .timeout_s = 20};
    struct err e = ERR_INIT;
    struct proc_result r;
    bool found;

    snprintf(path, sizeof path, "LD_LIBRARY_PATH=%s:%s", libraries ? libraries : "", ours ? ours : "");
    free(ours);
    if (proc_run(&s, &r, &e) < 0)
        return false;
    found = r.why == PROC_EXITED && r.code == 0 && !strstr(r.out.p, "not found") && !strstr(r.err.p, "not found");
    proc_result_free(&r);
    return found;
}
