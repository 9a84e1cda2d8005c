/* desk.c - see desk.h. */
#include "eval/process/desk.h"

#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/trace.h"
#include "eval/process/backend.h"

void desk_init(struct desk *k)
{
    *k = (struct desk){.dev = NULL};
    pthread_mutex_init(&k->lock, NULL);
    pthread_mutex_init(&k->making, NULL);
}

void desk_set_init(struct desk_set *s)
{
    for (int i = 0; i < DESKS; i++)
        desk_init(&s->each[i]);
}

void desk_set_close(struct desk_set *s)
{
    for (int i = 0; i < DESKS; i++)
        desk_close(&s->each[i]);
}

struct desk *desk_of(struct desk_set *s, const char *task)
{
    return &s->each[hash64(task, strlen(task), 3) % DESKS];
}

/* Opens the device, or says why not. */
static int open_device(struct desk *k, const char *name, struct err *e)
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

int desk_open(struct desk *k, const struct backend *b, struct err *e)
{
    int rc = 0;

    pthread_mutex_lock(&k->lock);
    if (!k->dev)
        rc = open_device(k, b->clock ? b->clock : "host", e);
    pthread_mutex_unlock(&k->lock);
    return rc;
}

void desk_close(struct desk *k)
{
    if (k->dev)
        device_close(k->dev);
    pthread_mutex_destroy(&k->lock);
    pthread_mutex_destroy(&k->making);
    memset(k, 0, sizeof *k);
}

void desk_lock(struct desk *k)
{
    double t0 = now_s();

    pthread_mutex_lock(&k->lock);
    trace_span(t0, "wait", "desk");
    k->since = now_s();
}

void desk_unlock(struct desk *k)
{
    trace_span(k->since, "desk", "desk");
    pthread_mutex_unlock(&k->lock);
}

int desk_alloc(struct desk *k, size_t n, enum device_mem kind, struct device_buf *ret, struct err *e)
{
    int rc;

    desk_lock(k);
    rc = device_alloc(k->dev, n, kind, ret, e);
    desk_unlock(k);
    return rc;
}

void desk_free(struct desk *k, struct device_buf *b)
{
    if (!b->dev)
        return;
    desk_lock(k);
    device_free(b);
    desk_unlock(k);
}

json_t *desk_spec(const struct device_buf *b)
{
    return json_pack("{s:s,s:I,s:I}", "kind", device_info(b->dev)->backend, "size", (json_int_t)b->size, "capacity",
                     (json_int_t)b->capacity);
}

int desk_fetch(struct desk *k, const struct device_buf *from, size_t at, void *to, size_t n, struct err *e)
{
    int rc;

    desk_lock(k);
    rc = device_download(from, at, to, n, e);
    desk_unlock(k);
    return rc;
}
