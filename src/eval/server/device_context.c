/* device_context.c - see device_context.h. */
#include "eval/server/device_context.h"

#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/trace.h"
#include "eval/build/judge_backend.h"

static void device_context_init(struct device_context *k)
{
    *k = (struct device_context){.dev = NULL};
    pthread_mutex_init(&k->lock, NULL);
    pthread_mutex_init(&k->making, NULL);
}

void device_context_set_init(struct device_context_set *s)
{
    for (int i = 0; i < DEVICE_CONTEXTS; i++)
        device_context_init(&s->each[i]);
}

/* Closes the device and frees k's locks, after all its buffers are freed; a zeroed k is fine. */
static void device_context_close(struct device_context *k)
{
    if (k->dev)
        device_close(k->dev);
    pthread_mutex_destroy(&k->lock);
    pthread_mutex_destroy(&k->making);
    memset(k, 0, sizeof *k);
}

void device_context_set_close(struct device_context_set *s)
{
    for (int i = 0; i < DEVICE_CONTEXTS; i++)
        device_context_close(&s->each[i]);
}

struct device_context *device_context_of(struct device_context_set *s, const char *task)
{
    return &s->each[hash64(task, strlen(task), 3) % DEVICE_CONTEXTS];
}

/* Opens the device, or says why not. */
static int device_context_open_device(struct device_context *k, const char *name, struct err *e)
{
    struct err why = ERR_INIT;
    struct device *d;

    if (device_open(name, 0, &d, &why) < 0) {
        err_set(e, ERR_ENV, "the judge's own device: %s", why.msg);
        return err_lack(e, why.lack);
    }
    if (device_info(d)->vmm_fd && device_has_kernels(d)) {
        k->dev = d;
        return 0;
    }
    err_set(e, ERR_ENV, "%s; see 'musacoder doctor'", device_has_kernels(d) ? "the device cannot share its memory"
                                                                            : "build/lib/judge.fatbin is missing");
    device_close(d);
    return -1;
}

int device_context_open(struct device_context *k, const struct judge_backend *b, struct err *e)
{
    int rc = 0;

    pthread_mutex_lock(&k->lock);
    if (!k->dev)
        rc = device_context_open_device(k, b->clock ? b->clock : "host", e);
    pthread_mutex_unlock(&k->lock);
    return rc;
}

/* Takes the context for this thread. */
void device_context_lock(struct device_context *k)
{
    double t0 = now_s();

    pthread_mutex_lock(&k->lock);
    trace_span(t0, "wait", "desk");
    k->since = now_s();
}

void device_context_unlock(struct device_context *k)
{
    trace_span(k->since, "desk", "desk");
    pthread_mutex_unlock(&k->lock);
}

int device_context_alloc(struct device_context *k, size_t n, enum device_mem kind, struct device_buf *ret,
                         struct err *e)
{
    int rc;

    device_context_lock(k);
    rc = device_alloc(k->dev, n, kind, ret, e);
    device_context_unlock(k);
    return rc;
}

void device_context_free(struct device_context *k, struct device_buf *b)
{
    if (!b->dev)
        return;
    device_context_lock(k);
    device_free(b);
    device_context_unlock(k);
}

json_t *device_context_spec(const struct device_buf *b)
{
    return json_pack("{s:s,s:I,s:I}", "kind", device_info(b->dev)->backend, "size", (json_int_t)b->size, "capacity",
                     (json_int_t)b->capacity);
}

int device_context_fetch(struct device_context *k, const struct device_buf *from, size_t at, void *to, size_t n,
                         struct err *e)
{
    int rc;

    device_context_lock(k);
    rc = device_download(from, at, to, n, e);
    device_context_unlock(k);
    return rc;
}
