/* desk.c - see desk.h. */
#include "eval/desk.h"

#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/trace.h"
#include "eval/backend.h"

#define AREA_UNIT ((size_t)2 << 20) /* granularity of shared device memory */

void desk_init(struct desk *k)
{
    *k = (struct desk){.dev = NULL};
    pthread_mutex_init(&k->lock, NULL);
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

int desk_area(struct desk *k, size_t n, struct device_buf *b, int *ret_fd, struct err *e)
{
    int rc;

    *ret_fd = -1;
    if (b->dev && b->size >= n)
        return 0;
    desk_free(k, b);
    n = (n + AREA_UNIT - 1) / AREA_UNIT * AREA_UNIT; /* all that is mapped is ours to clear */
    if (desk_alloc(k, n ? n : AREA_UNIT, DEVICE_SHARED, b, e) < 0)
        return -1;
    desk_lock(k);
    /* a driver need not clear memory that this process had before: it may have held expected values */
    rc = b->capacity != b->size ? err_set(e, ERR_ENV, "shared memory comes in pieces of %zu bytes here", b->capacity)
                                : device_memset(b, 0, 0, b->size, e);
    if (rc == 0)
        rc = device_sync(k->dev, e) < 0 ? -1 : device_export(b, ret_fd, e);
    desk_unlock(k);
    if (rc < 0)
        desk_free(k, b);
    return rc;
}

json_t *desk_spec(const struct device_buf *b)
{
    return json_pack("{s:s,s:I,s:I}", "kind", device_info(b->dev)->backend, "size", (json_int_t)b->size, "capacity",
                     (json_int_t)b->capacity);
}

int desk_copy(struct desk *k, struct device_buf *to, const struct device_buf *from, size_t from_at, size_t n,
              struct err *e)
{
    int rc;

    desk_lock(k);
    rc = device_copy(to, 0, from, from_at, n, e) < 0 || device_sync(k->dev, e) < 0 ? -1 : 0;
    desk_unlock(k);
    return rc;
}

int desk_fetch(struct desk *k, const struct device_buf *from, size_t at, void *to, size_t n, struct err *e)
{
    int rc;

    desk_lock(k);
    rc = device_download(from, at, to, n, e);
    desk_unlock(k);
    return rc;
}
