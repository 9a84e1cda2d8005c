/* cuda_driver.c - see cuda_driver.h. */
#include "device/cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUT_OF_MEMORY 2 /* CUDA_ERROR_OUT_OF_MEMORY */

/* A driver with what was found of it. */
static struct loaded {
    struct drv_vendor vendor;
    void *lib;
    struct drv driver;
    struct err why; /* why there is no driver */
    bool tried;
} drivers[] = {
    {.vendor = {.device = "cuda", .owner = "NVIDIA", .env = "MUSACODER_LIBCUDA", .library = "libcuda.so.1",
                .prefix = "cu", .needs = "install one for CUDA 12.4 or later",
                .remedy = "install the NVIDIA driver, give this container its devices, or use '--backend sim'",
                .kernels = "exec.fatbin", .compiler = "nvcc", .wire_backend = 1}},
    {.vendor = {.device = "musa", .owner = "MUSA", .env = "MUSACODER_LIBMUSA", .library = "libmusa.so",
                .prefix = "mu", .partial = true, .needs = "install one for MUSA 4 or later",
                .remedy = "install Moore Threads' driver and MUSA SDK, or use '--backend sim --profile s4000'",
                .kernels = "exec.mubin", .kernels_env = "MUSACODER_EXEC_MUBIN", .compiler = "mcc",
                .wire_backend = 2}},
};

static pthread_mutex_t cuda_driver_lock = PTHREAD_MUTEX_INITIALIZER;

/* The table's driver of that device's name; NULL: none. */
static struct loaded *cuda_driver_of(const char *device)
{
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
        if (!strcmp(drivers[i].vendor.device, device))
            return &drivers[i];
    return NULL;
}

const struct drv_vendor *drv_vendor_find(const char *device)
{
    const struct loaded *l = cuda_driver_of(device);

    return l ? &l->vendor : NULL;
}

/* The executor does without these where a driver has CUDA's interface in part. */
static bool cuda_driver_is_optional(const char *name)
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

int drv_symbol(const struct drv_vendor *v, const char *name, void **ret, struct err *e)
{
    const struct loaded *l = cuda_driver_of(v->device);
    char spelled[80], *version;

    snprintf(spelled, sizeof spelled, "%s%s", v->prefix, name + 2);
    *ret = l->lib ? dlsym(l->lib, spelled) : NULL;
    if (!*ret && v->partial && (version = strstr(spelled, "_v2"))) {
        *version = 0;
        *ret = dlsym(l->lib, spelled);
    }
    if (*ret || (v->partial && cuda_driver_is_optional(name)))
        return 0;
    return err_set(e, ERR_ENV, "the %s driver is too old: it has no %s%s; %s", v->owner, v->prefix, name + 2,
                   v->needs);
}

/* Finds every function of the driver; l->why names a missing one. */
static int cuda_driver_find_all(struct loaded *l)
{
#define DRV_FIND(name, symbol, args)                                                                                   \
    if (drv_symbol(&l->vendor, symbol, (void **)&l->driver.name, &l->why) < 0)                                        \
        return -1;
    DRV_FUNCTIONS(DRV_FIND)
#undef DRV_FIND
    return 0;
}

/* Loads a vendor's driver once and finds all of its functions; l->why says why it is not usable. */
static void cuda_driver_load(struct loaded *l)
{
    const struct drv_vendor *v = &l->vendor;
    const char *name = getenv(v->env), *text = "";
    int code;

    l->tried = true;
    l->lib = dlopen(name = name && *name ? name : v->library, RTLD_NOW | RTLD_LOCAL);
    if (!l->lib) {
        err_set(&l->why, ERR_ENV, "no %s driver: '%s' is not found; %s", v->owner, name, v->remedy);
        return;
    }
    if (cuda_driver_find_all(l) < 0)
        return;
    code = l->driver.Init(0);
    if (code && l->driver.GetErrorString(code, &text) != 0)
        text = "unknown error";
    if (code)
        err_set(&l->why, ERR_ENV, "the %s driver does not start: %s (%d); %s", v->owner, text, code, v->remedy);
}

const struct drv *drv_load(const char *device, struct err *e)
{
    struct loaded *l = cuda_driver_of(device);

    if (!l) {
        err_set(e, ERR_INPUT, "device '%.40s' has no driver of CUDA's kind", device);
        return NULL;
    }
    pthread_mutex_lock(&cuda_driver_lock);
    if (!l->tried)
        cuda_driver_load(l);
    pthread_mutex_unlock(&cuda_driver_lock);
    if (l->why.kind == ERR_NONE)
        return &l->driver;
    err_set(e, l->why.kind, "%s", l->why.msg);
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
    if (!c->GetErrorName || c->GetErrorName(code, &name) != 0 || !name)
        name = "?";
    err_set(e, ERR_ENV, "%s: %s (%s, %d)", what, text, name, code);
    return code == OUT_OF_MEMORY ? err_lack(e, LACK_DEVICE) : -1;
}
