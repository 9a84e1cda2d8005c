/* backends.c - see backends.h. */
#include "serve/backends.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

struct backends {
    pthread_mutex_t lock;
    json_t *served; /* backend -> true */
};

struct backends *backends_new(void)
{
    struct backends *b = xcalloc(1, sizeof *b);

    pthread_mutex_init(&b->lock, NULL);
    b->served = json_object();
    return b;
}

void backends_free(struct backends *b)
{
    if (!b)
        return;
    json_decref(b->served);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

void backends_look(struct backends *b, const json_t *workers)
{
    json_t *served = json_object(), *old;
    const json_t *w;
    size_t i;

    json_array_foreach((json_t *)workers, i, w) {
        const json_t *info = json_object_get(w, "info");

        if (!json_flag(w, "drain", false) && strcmp(json_str(info, "kind", "both"), "build"))
            json_object_set_new(served, json_str(info, "backend", "?"), json_true());
    }
    pthread_mutex_lock(&b->lock);
    old = b->served;
    b->served = served;
    pthread_mutex_unlock(&b->lock);
    json_decref(old);
}

bool backends_served(struct backends *b, const char *backend)
{
    bool there;

    pthread_mutex_lock(&b->lock);
    there = json_object_get(b->served, backend) != NULL;
    pthread_mutex_unlock(&b->lock);
    return there;
}

void backends_say_lack(const char *backend, bool starts, struct buf *out)
{
    if (starts) {
        buf_addf(out, "the server's own worker for backend '%.40s' is starting; the very first start takes up to a "
                      "minute", backend);
        return;
    }
    buf_addf(out, "no worker gives verdicts for backend '%.40s' now; start one: musacoder worker --backend %.40s "
                  "--queue URL", backend, backend);
}
