/* retry.c - see retry.h. */
#include "eval/schedule/retry.h"

#include <string.h>

enum err_lack retry_others(const struct try_error *x)
{
    if (!x->alone && !strcmp(x->finding, "out_of_memory"))
        return LACK_DEVICE;
    return x->killed_outside && !(x->alone && x->large) ? LACK_HOST : LACK_NONE;
}

static enum retry_step retry_larger(enum retry_step a, enum retry_step b)
{
    return a > b ? a : b;
}

/* What a try must have so that this does not happen again. */
static enum retry_step retry_wanted(enum retry_step had, const struct try_seen *seen)
{
    if (!seen->shared || seen->lack == LACK_NONE)
        return RETRY_AGAIN;
    return seen->lack == LACK_DEVICE && seen->learned && had < RETRY_KNOWN ? RETRY_KNOWN : RETRY_ALONE;
}

enum retry_step retry_next(int made, enum retry_step had, const struct try_seen *seen)
{
    enum retry_step want = retry_wanted(had, seen);
    enum retry_step last = made + 1 >= RETRY_TRIES && seen->shared ? RETRY_ALONE : RETRY_AGAIN;

    if (seen->end == TRY_VERDICT || seen->stopped || made >= RETRY_TRIES)
        return RETRY_STOP;
    if (seen->end == TRY_NOTHING)
        return want > had ? want : RETRY_STOP;
    return retry_larger(retry_larger(want, last), had);
}

enum retry_step retry_run(void (*once)(void *ctx, enum retry_step how, struct try_seen *seen), void (*again)(void *ctx),
                          void *ctx, struct try_seen *ret_seen)
{
    enum retry_step how = RETRY_AGAIN, next = RETRY_AGAIN;

    for (int made = 1; next != RETRY_STOP; made++) {
        how = next;
        if (made > 1 && again)
            again(ctx);
        once(ctx, how, ret_seen);
        next = retry_next(made, how, ret_seen);
    }
    return how;
}

bool retry_is_final(enum retry_step had, const struct try_seen *seen)
{
    return seen->end == TRY_INFRA && retry_wanted(had, seen) > RETRY_AGAIN && had >= retry_wanted(had, seen);
}
