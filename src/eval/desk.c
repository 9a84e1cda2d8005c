/* desk.c - see desk.h. */
#include "eval/desk.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/trace.h"
#include "eval/backend.h"

#define AREA_UNIT ((size_t)2 << 20) /* granularity of shared device memory */

void desk_init(struct desk *k, struct desk_common *common)
{
    *k = (struct desk){.common = common};
    pthread_mutex_init(&k->lock, NULL);
}

void desk_set_init(struct desk_set *s)
{
    for (int i = 0; i < DESKS; i++)
        desk_init(&s->each[i], &s->common);
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

/* The device whose memory children of b share; NULL: none. "host:N" is for tests: N bytes of master copies. */
static const char *device_of(const struct backend *b, size_t *budget)
{
    const char *wish = getenv("MUSACODER_VALUES");

    if (wish && !strcmp(wish, "frames"))
        return NULL;
    if (!wish || strncmp(wish, "host", 4) || b->timed)
        return b->values;
    if (wish[4] == ':')
        *budget = strtoull(wish + 5, NULL, 10);
    return "host";
}

static void turn_off(struct desk_common *c, const char *since, const char *why)
{
    if (!atomic_exchange(&c->off, true))
        log_warn("values travel in frames%s: %s", since, why);
}

/* Opens the device, or says why not: that its memory is used up is no reason to go without it for good. */
static int open_device(struct desk *k, const char *name, size_t budget, struct err *e)
{
    struct err why = ERR_INIT;
    struct device *d;
    size_t share;

    if (device_open(name, 0, &d, &why) < 0) {
        if (why.lack == LACK_DEVICE) {
            err_set(e, why.kind, "%s", why.msg);
            return err_lack(e, LACK_DEVICE);
        }
        turn_off(k->common, "", why.msg);
    } else if (!device_info(d)->vmm_fd || !device_has_kernels(d)) {
        turn_off(k->common, "", device_has_kernels(d) ? "the device cannot share its memory" : "build/lib/judge.fatbin is missing");
        device_close(d);
    } else {
        share = device_info(d)->memory / DESK_SHARE;
        k->common->budget = budget < share ? budget : share;
        k->dev = d;
    }
    return 0;
}

int desk_open(struct desk *k, const struct backend *b, struct err *e)
{
    size_t budget = SIZE_MAX;
    const char *name = device_of(b, &budget);
    int rc = 0;

    if (!name || k->common->off)
        return 0;
    pthread_mutex_lock(&k->lock);
    if (!k->dev)
        rc = open_device(k, name, budget, e);
    pthread_mutex_unlock(&k->lock);
    return rc < 0 ? -1 : !k->common->off;
}

int desk_open_streamed(struct desk *k, const struct backend *b, struct err *e)
{
    int rc = 0;

    pthread_mutex_lock(&k->lock);
    if (!k->dev)
        rc = open_device(k, b->clock ? b->clock : "host", SIZE_MAX, e);
    pthread_mutex_unlock(&k->lock);
    if (rc == 0 && !k->dev)
        rc = err_set(e, ERR_ENV, "the judge cannot share device memory here; see 'musacoder doctor'");
    return rc;
}

void desk_refuse(struct desk *k, const char *why)
{
    if (!k->common->mapped)
        turn_off(k->common, " from now on", why);
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
    if (rc == 0 && kind == DEVICE_PLAIN)
        k->common->held += ret->capacity;
    desk_unlock(k);
    return rc;
}

void desk_free(struct desk *k, struct device_buf *b)
{
    if (!b->dev)
        return;
    desk_lock(k);
    if (b->kind == DEVICE_PLAIN)
        k->common->held -= b->capacity;
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
