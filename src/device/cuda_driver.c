/* cuda_driver.c - see cuda_driver.h. */
#include "device/cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUT_OF_MEMORY 2 /* CUDA_ERROR_OUT_OF_MEMORY */

/* A vendor's driver: where it is, how it spells names, and what was found. */
static struct vendor {
    const char *env, *library, *owner, *prefix, *needs, *remedy;
    void *lib;
    struct drv driver;
    struct err why; /* why there is no driver */
    pthread_once_t once;
} vendors[] = {
    {"MUSACODER_LIBCUDA", "libcuda.so.1", "NVIDIA", "cu", "install one for CUDA 12 or later",
     "install the NVIDIA driver, give this container its devices, or use '--backend sim'", NULL, {0}, ERR_INIT,
     PTHREAD_ONCE_INIT},
    {"MUSACODER_LIBMUSA", "libmusa.so", "MUSA", "mu", "install one for MUSA 4 or later",
     "install Moore Threads' driver and MUSA SDK, or use '--backend sim --profile s4000'", NULL, {0}, ERR_INIT,
     PTHREAD_ONCE_INIT},
};

void *drv_symbol(enum drv_vendor which, const char *name)
{
    const struct vendor *v = &vendors[which];
    char spelled[80], *version;
    void *f;

    snprintf(spelled, sizeof spelled, "%s%s", v->prefix, name + 2);
    f = v->lib ? dlsym(v->lib, spelled) : NULL;
    if (!f && which == DRV_MOORE_THREADS && (version = strstr(spelled, "_v2"))) {
        *version = 0;
        f = dlsym(v->lib, spelled);
    }
    return f;
}

/* The executor does without these; NVIDIA's driver has them. */
bool drv_is_optional(const char *name)
{
    static const char *const names[] = {"cuDeviceGetUuid_v2", "cuCtxResetPersistingL2Cache", "cuMemHostRegister_v2",
                                        "cuMemHostUnregister", "cuMemHostGetDevicePointer_v2", "cuGetErrorName",
                                        "cuProfilerStart", "cuProfilerStop", "cuFuncGetParamInfo", "cuLaunchKernelEx",
                                        "cuTensorMapEncodeTiled"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

static int cuda_driver_find_all(enum drv_vendor which, const char **ret_missing)
{
    struct drv *driver = &vendors[which].driver;

#define DRV_FIND(name, symbol, args)                                                                                   \
    *(void **)&driver->name = drv_symbol(which, symbol);                                                               \
    if (!driver->name && !(which == DRV_MOORE_THREADS && drv_is_optional(symbol))) {                                   \
        *ret_missing = symbol;                                                                                         \
        return -1;                                                                                                     \
    }
    DRV_FUNCTIONS(DRV_FIND)
#undef DRV_FIND
    return 0;
}

static void cuda_driver_load(enum drv_vendor which)
{
    struct vendor *v = &vendors[which];
    const char *name = getenv(v->env), *missing = NULL, *text = "";
    int code;

    v->lib = dlopen(name = name && *name ? name : v->library, RTLD_NOW | RTLD_LOCAL);
    if (!v->lib) {
        err_set(&v->why, ERR_ENV, "no %s driver: '%s' is not found; %s", v->owner, name, v->remedy);
        return;
    }
    if (cuda_driver_find_all(which, &missing) < 0) {
        err_set(&v->why, ERR_ENV, "the %s driver is too old: it has no %s%s; %s", v->owner, v->prefix, missing + 2,
                v->needs);
        return;
    }
    code = v->driver.Init(0);
    if (code && v->driver.GetErrorString(code, &text) != 0)
        text = "unknown error";
    if (code)
        err_set(&v->why, ERR_ENV, "the %s driver does not start: %s (%d); %s", v->owner, text, code, v->remedy);
}

static void cuda_driver_load_nvidia(void)
{
    cuda_driver_load(DRV_NVIDIA);
}

static void cuda_driver_load_moore_threads(void)
{
    cuda_driver_load(DRV_MOORE_THREADS);
}

static const struct drv *cuda_driver_loaded(enum drv_vendor which, void (*how)(void), struct err *e)
{
    struct vendor *v = &vendors[which];

    pthread_once(&v->once, how);
    if (v->why.kind == ERR_NONE)
        return &v->driver;
    err_set(e, v->why.kind, "%s", v->why.msg);
    return NULL;
}

const struct drv *drv_load(struct err *e)
{
    return cuda_driver_loaded(DRV_NVIDIA, cuda_driver_load_nvidia, e);
}

const struct drv *drv_load_musa(struct err *e)
{
    return cuda_driver_loaded(DRV_MOORE_THREADS, cuda_driver_load_moore_threads, e);
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
    if (!c->GetErrorName || c->GetErrorName(code, &name) != 0 || !name)
        name = "?";
    err_set(e, ERR_ENV, "%s: %s (%s, %d)", what, text, name, code);
    return code == OUT_OF_MEMORY ? err_lack(e, LACK_DEVICE) : -1;
}
