/* fake_verdict.h - a verdict service in the test program itself: the linker prefers it to queue's. A response passes
 * when it holds at least fake_need letters 'a'; its reward rises with their number. */
#ifndef MC_TEST_FAKE_VERDICT_H
#define MC_TEST_FAKE_VERDICT_H

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "queue/verdict.h"

struct verdict_service {
    int unused;
};
struct verdict_batch {
    json_t *v;
};

static int fake_need = 3, fake_calls, fake_infra_every;

int verdict_service_start(const struct verdict_config *c, struct verdict_service **ret, struct err *e)
{
    *ret = calloc(1, sizeof **ret);
    return 0;
}

void verdict_service_stop(struct verdict_service *s)
{
    free(s);
}

static json_t *fake_verdict(const char *text)
{
    int n = 0;

    fake_calls++;
    for (; *text; text++)
        n += *text == 'a';
    if (fake_infra_every && fake_calls % fake_infra_every == 0)
        return json_pack("{s:s,s:s,s:n}", "status", "infra", "category", "infra", "reward");
    if (n >= fake_need)
        return json_pack("{s:s,s:n,s:f}", "status", "passed", "category", "reward", 1.0);
    return json_pack("{s:s,s:s,s:f,s:s}", "status", "failed", "category", "correctness_error", "reward",
                     -1 + 0.5 * n / fake_need, "feedback", "too few");
}

int verdict_batch_submit(struct verdict_service *s, const struct verdict_request *items, int n,
                         struct verdict_batch **ret, struct err *e)
{
    *ret = calloc(1, sizeof **ret);
    (*ret)->v = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new((*ret)->v, fake_verdict(items[i].candidate));
    return 0;
}

int verdict_batch_wait(struct verdict_service *s, struct verdict_batch *b, void (*on_progress)(int, int, void *),
                       void *ctx, json_t **ret, struct err *e)
{
    *ret = b->v;
    free(b);
    return 0;
}

int verdict_batch_done(struct verdict_service *s, struct verdict_batch *b)
{
    return (int)json_array_size(b->v);
}

void verdict_batch_cancel(struct verdict_service *s, struct verdict_batch *b)
{
    json_decref(b->v);
    free(b);
}

#endif
