/* torch_device.c - finds or compiles the device inside PyTorch; see torch_device.h. */
#include "eval/server/torch_device.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "proc/proc.h"

#define COMPILE_S 900 /* three sources that read all of torch's headers, on a slow machine */

/* The version of the runner's PyTorch without importing it: version.py beside the package. The caller frees it. */
static char *torch_device_version(const char *python, struct err *e)
{
    static const char code[] =
        "import importlib.util as u, os, runpy; s = u.find_spec('torch').submodule_search_locations[0]; "
        "print(runpy.run_path(os.path.join(s, 'version.py'))['__version__'])";
    char *argv[] = {(char *)python, "-c", (char *)code, NULL}, *version = NULL;
    struct proc_result r;

    if (proc_run(&(struct proc_spec){.argv = argv, .timeout_s = 60}, &r, e) < 0)
        return NULL;
    if (r.why == PROC_EXITED && r.code == 0)
        version = xstrndup(r.out.p, strcspn(r.out.p, "\n"));
    else
        err_set(e, ERR_ENV, "'%s' has no PyTorch; run 'musacoder setup', or set MUSACODER_PYTHON", python);
    proc_result_free(&r);
    return version;
}

/* Compiles PyTorch's client for this Python into folder. ERR_ENV with the compiler's words. */
static int torch_device_compile(const char *python, const char *folder, struct err *e)
{
    char *script = path_share("litetorch/build.sh"), *libs = path_lib_folder();
    char *argv[] = {"/bin/sh", script, (char *)folder, libs, NULL};
    char *python_env = xasprintf("MUSACODER_PYTHON=%s", python);
    const char *env[] = {python_env, NULL};
    struct proc_result r;
    int rc = proc_run(&(struct proc_spec){.argv = argv, .env = env, .timeout_s = COMPILE_S}, &r, e);

    if (rc == 0) {
        if (r.why != PROC_EXITED || r.code != 0)
            rc = err_set(e, ERR_ENV, "the device inside PyTorch does not compile (%s): %.400s", proc_result_text(&r),
                         r.err.n ? r.err.p : r.out.p);
        proc_result_free(&r);
    }
    free(python_env), free(script), free(libs);
    return rc;
}

/* One process compiles, the others wait for its lock. */
static int torch_device_locked(const char *python, const char *version, const char *folder, const char *library,
                               struct err *e)
{
    char *lock_path = path_join(folder, "lock");
    int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), rc = 0;

    free(lock_path);
    if (lock < 0 || flock(lock, LOCK_EX) < 0)
        rc = err_sys(e, "cannot lock '%s'", folder);
    else { /* build.sh does nothing where the library is newer than its sources */
        if (!file_exists(library))
            log_info("first run with PyTorch %s: compiling the device inside it (about half a minute, once)", version);
        rc = torch_device_compile(python, folder, e);
    }
    if (lock >= 0)
        close(lock);
    return rc;
}

int torch_device_prepare(char **ret, struct err *e)
{
    char *own = path_lib("libfronttorch.so"), *python, *version, *name, *folder, *library;
    int rc;

    *ret = NULL;
    if (own) {
        free(own);
        return 0;
    }
    if (!(python = path_python(e)))
        return -1;
    if (!(version = torch_device_version(python, e))) {
        free(python);
        return -1;
    }
    name = xasprintf("torch/%s", version);
    folder = path_data(name);
    library = path_join(folder, "lib/libfronttorch.so");
    rc = dir_make(folder, e);
    if (rc == 0)
        rc = torch_device_locked(python, version, folder, library, e);
    if (rc == 0)
        *ret = library;
    else
        free(library);
    free(name), free(folder), free(version), free(python);
    return rc;
}
