/* engine_device.c - finds the library of a kind of device and opens one device of it. */
#include "nn/engine_device.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

static const struct engine_device_kind {
    const char *name, *library, *remedy;
} kinds[] = {
    {"cuda", "libnncuda.so", "build where CUDA's nvcc is installed"},
    {"musa", "libnnmusa.so", "run 'make MUSA=1' where Moore Threads' mcc is installed"},
    {"sim", "libnnsim.so", "run 'make'"},
};

static const struct engine_device_kind *engine_device_kind_of(const char *spec, int *ret_ordinal, struct err *e)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t n = strlen(kinds[i].name);
        char *end;
        if (strncmp(spec, kinds[i].name, n) || (spec[n] && spec[n] != ':'))
            continue;
        *ret_ordinal = spec[n] ? (int)strtol(spec + n + 1, &end, 10) : 0;
        if (!spec[n] || (spec[n + 1] && !*end && *ret_ordinal >= 0))
            return &kinds[i];
    }
    err_set(e, ERR_INPUT, "device '%s' is not cpu, cuda, cuda:N, musa, musa:N or sim", spec);
    return NULL;
}

static const struct nn_dev_ops *engine_device_load(const struct engine_device_kind *k, struct err *e)
{
    char *path = path_lib(k->library);
    const struct nn_dev_ops *ops;
    void *lib;

    if (!path) {
        err_set(e, ERR_ENV, "'%s' is missing for device '%s'; %s", k->library, k->name, k->remedy);
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
        err_set(e, ERR_ENV, "'%s' belongs to another build; run 'make' again", k->library);
        return NULL;
    }
    return ops;
}

const struct nn_dev_ops *nn_device_ops(const char *spec, struct err *e)
{
    int ordinal;
    const struct engine_device_kind *k = engine_device_kind_of(spec, &ordinal, e);

    return k ? engine_device_load(k, e) : NULL;
}

struct nn_device *nn_device_open(const char *spec, struct err *e)
{
    const struct nn_dev_ops *ops;
    const struct engine_device_kind *k;
    struct nn_device *d;
    char msg[256] = "";
    int ordinal = 0, n;

    if (!(k = engine_device_kind_of(spec, &ordinal, e)) || !(ops = engine_device_load(k, e)))
        return NULL;
    n = ops->count();
    if (ordinal >= n) {
        err_set(e, ERR_ENV, "device '%s': this machine has %d of that kind; 'musacoder doctor' says more", spec, n);
        return NULL;
    }
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
