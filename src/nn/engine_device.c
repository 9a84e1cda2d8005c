/* engine_device.c - finds the library of a kind of device and opens one device of it. */
#include "nn/engine_device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

#define KIND_MAX 16

/* "KIND" or "KIND:N" in its parts. */
static int engine_device_parse(const char *spec, char kind[KIND_MAX], int *ret_ordinal, struct err *e)
{
    char digits[5] = "0", more;
    int n = sscanf(spec, "%15[a-z]:%4[0-9]%c", kind, digits, &more);

    *ret_ordinal = atoi(digits);
    if (!strcmp(spec, "cpu") || (n != 2 && (n != 1 || strcmp(spec, kind))))
        return err_set(e, ERR_INPUT, "device '%s' is not cpu, cuda, cuda:N, musa, musa:N or sim", spec);
    return 0;
}

/* The library of a kind of device: libnnKIND.so, where the build made one. */
static const struct nn_dev_ops *engine_device_load(const char *kind, struct err *e)
{
    char name[KIND_MAX + 12], *path;
    const struct nn_dev_ops *ops;
    void *lib;

    snprintf(name, sizeof name, "libnn%s.so", kind);
    path = path_lib(name);
    if (!path) {
        err_set(e, ERR_ENV, "device '%s' needs '%s', which is missing; run 'make' (where nvcc is for cuda; 'make "
                            "MUSA=1' where mcc is for musa)", kind, name);
        return NULL;
    }
    lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        err_set(e, ERR_ENV, "cannot open '%s': %s", path, dlerror());
    free(path);
    if (!lib)
        return NULL;
    ops = dlsym(lib, NN_DEV_SYMBOL);
    if (!ops || ops->abi != NN_DEV_ABI) {
        err_set(e, ERR_ENV, "'%s' belongs to another build; run 'make' again", name);
        return NULL;
    }
    return ops;
}

const struct nn_dev_ops *nn_device_ops(const char *spec, struct err *e)
{
    char kind[KIND_MAX];
    int ordinal;

    return engine_device_parse(spec, kind, &ordinal, e) < 0 ? NULL : engine_device_load(kind, e);
}

/* The library that spec names, and the device's number; NULL with e. */
static const struct nn_dev_ops *engine_device_find(const char *spec, int *ret_ordinal, struct err *e)
{
    const struct nn_dev_ops *ops;
    char kind[KIND_MAX];
    int n;

    if (engine_device_parse(spec, kind, ret_ordinal, e) < 0 || !(ops = engine_device_load(kind, e)))
        return NULL;
    n = ops->count();
    if (*ret_ordinal < n)
        return ops;
    err_set(e, ERR_ENV, "device '%s': this machine has %d of that kind; 'musacoder doctor' says more", spec, n);
    return NULL;
}

int nn_device_check(const char *spec, struct err *e)
{
    int ordinal;

    return engine_device_find(spec, &ordinal, e) ? 0 : -1;
}

struct nn_device *nn_device_open(const char *spec, struct err *e)
{
    int ordinal = 0;
    const struct nn_dev_ops *ops = engine_device_find(spec, &ordinal, e);
    struct nn_device *d;
    char msg[256] = "";

    if (!ops)
        return NULL;
    d = xcalloc(1, sizeof *d);
    d->ops = ops;
    if (ops->open(ordinal, &d->q, msg, sizeof msg) < 0) {
        err_set(e, ERR_ENV, "device '%s': %s", spec, msg);
        free(d);
        return NULL;
    }
    ops->info(d->q, &d->info);
    return d;
}

void nn_device_close(struct nn_device *d)
{
    if (!d)
        return;
    d->ops->close(d->q);
    free(d);
}

void *nn_device_alloc(struct nn_device *d, size_t bytes, const char *what, struct err *e)
{
    void *p = d->ops->alloc(d->q, bytes);

    if (!p)
        err_set(e, ERR_ENV, "no device memory for %s (%.1f MB)", what, (double)bytes / 1e6);
    return p;
}

void nn_device_free(struct nn_device *d, void *p)
{
    if (p)
        d->ops->release(d->q, p);
}

int nn_device_sync(struct nn_device *d, struct err *e)
{
    char msg[256];

    return d->ops->sync(d->q, msg, sizeof msg) < 0 ? err_set(e, ERR_ENV, "%s", msg) : 0;
}
