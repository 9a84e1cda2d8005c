/* fake_verdict.h - a verdict service in the test program itself: the linker prefers it to the real one, so nothing is
 * compiled or run. The test defines fake_judge(), which makes the verdict of one request. */
#ifndef MC_TEST_FAKE_VERDICT_H
#define MC_TEST_FAKE_VERDICT_H

#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "verdicts/verdict_service.h"

struct verdict_service {
    int unused;
};
struct verdict_batch {
    json_t *verdicts;
};

static json_t *fake_judge(const struct verdict_request *item); // a new reference

static int fake_judged;     // verdicts handed out
static int fake_stop_after; // where not 0: waiting is stopped once fake_judged has reached it

int verdict_service_start(const struct verdict_config *c, struct verdict_service **ret, struct err *e)
{
    *ret = xcalloc(1, sizeof **ret);
    return 0;
}

void verdict_service_stop(struct verdict_service *s)
{
    free(s);
}

int verdict_batch_submit(struct verdict_service *s, const struct verdict_request *items, int n,
                         struct verdict_batch **ret, struct err *e)
{
    *ret = xcalloc(1, sizeof **ret);
    (*ret)->verdicts = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new((*ret)->verdicts, fake_judge(&items[i]));
    return 0;
}

int verdict_service_wait(struct verdict_service *s, struct err *e)
{
    return 0;
}

int verdict_batch_done(struct verdict_service *s, struct verdict_batch *b, struct err *e)
{
    return (int)json_array_size(b->verdicts);
}

void verdict_batch_cancel(struct verdict_service *s, struct verdict_batch *b)
{
    json_decref(b->verdicts);
    free(b);
}

int verdict_batch_wait(struct verdict_service *s, struct verdict_batch *b, void (*on_progress)(int, int, void *),
                       void *ctx, json_t **ret, struct err *e)
{
    if (fake_stop_after && fake_judged >= fake_stop_after) {
        verdict_batch_cancel(s, b);
        return err_set(e, ERR_STOP, "stopped");
    }
    fake_judged += (int)json_array_size(b->verdicts);
    *ret = b->verdicts;
    free(b);
    return 0;
}

#endif
