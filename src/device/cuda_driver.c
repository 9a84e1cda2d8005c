/* cuda_driver.c - see cuda_driver.h. */
#include "device/cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static struct drv driver;
static struct err why = ERR_INIT; /* why there is no driver */
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define OUT_OF_MEMORY 2 /* CUDA_ERROR_OUT_OF_MEMORY */
#define REMEDY "install the NVIDIA driver, give this container its devices, or use '--backend sim'"

static int find_all(void *lib, const char **ret_missing)
{
#define DRV_FIND(name, symbol, args)                                                                                   \
    *(void **)&driver.name = dlsym(lib, symbol);                                                                       \
    if (!driver.name) {                                                                                                \
        *ret_missing = symbol;                                                                                         \
        return -1;                                                                                                     \
    }
    DRV_FUNCTIONS(DRV_FIND)
#undef DRV_FIND
    return 0;
}

static void load(void)
{
    const char *name = getenv("MUSACODER_LIBCUDA"), *missing = NULL, *text = "";
    void *lib = dlopen(name = name && *name ? name : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int code;

    if (!lib) {
        err_set(&why, ERR_ENV, "no NVIDIA driver: '%s' is not found; " REMEDY, name);
        return;
    }
    if (find_all(lib, &missing) < 0) {
        err_set(&why, ERR_ENV, "the NVIDIA driver is too old: it has no %s; install one for CUDA 12 or later", missing);
        return;
    }
    code = driver.Init(0);
    if (code && driver.GetErrorString(code, &text) != 0)
        text = "unknown error";
    if (code)
        err_set(&why, ERR_ENV, "the NVIDIA driver does not start: %s (%d); " REMEDY, text, code);
}

const struct drv *drv_load(struct err *e)
{
    pthread_once(&once, load);
    if (why.kind == ERR_NONE)
        return &driver;
    err_set(e, why.kind, "%s", why.msg);
    return NULL;
}

int drv_fail(const struct drv *c, int code, struct err *e, const char *fmt, ...)
{
    const char *text = NULL, *name = NULL;
    char what[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (c->GetErrorString(code, &text) != 0 || !text)
        text = "unknown error";
    if (c->GetErrorName(code, &name) != 0 || !name)
        name = "?";
    err_set(e, ERR_ENV, "%s: %s (%s, %d)", what, text, name, code);
    return code == OUT_OF_MEMORY ? err_lack(e, LACK_DEVICE) : -1;
}
