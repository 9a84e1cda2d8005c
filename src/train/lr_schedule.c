/* lr_schedule.c - see lr_schedule.h. */
#include "train/lr_schedule.h"

#include <math.h>
#include <string.h>

int schedule_check(const struct lr_schedule *s, struct err *e)
{
    if (!(s->peak > 0 && s->peak <= 1))
        return err_set(e, ERR_INPUT, "lr is %g; use more than 0, at most 1, such as 1e-5", s->peak);
    if (!(s->warmup >= 0 && s->warmup <= 1) || !(s->floor >= 0 && s->floor <= 1))
        return err_set(e, ERR_INPUT, "warmup is %g and lr-floor %g; both are shares, 0 to 1", s->warmup, s->floor);
    return 0;
}

int schedule_kind_of(const char *name, enum schedule_kind *ret, struct err *e)
{
    static const char *const names[] = {"constant", "linear", "cosine", "wsd"};

    for (int i = 0; i < 4; i++)
        if (!strcmp(name, names[i])) {
            *ret = (enum schedule_kind)i;
            return 0;
        }
    return err_set(e, ERR_INPUT, "no schedule '%s'; use constant, linear, cosine or wsd", name);
}

/* 1 to 0 where u goes from 0 to 1: the way between warm-up and the end. */
static double lr_schedule_shape_at(enum schedule_kind kind, double u)
{
    switch (kind) {
    case SCHED_LINEAR: return 1 - u;
    case SCHED_COSINE: return 0.5 * (1 + cos(acos(-1.0) * u));
    case SCHED_WSD: return fmin(1, (1 - u) / SCHED_DECAY);
    case SCHED_CONSTANT: break;
    }
    return 1;
}

double schedule_lr(const struct lr_schedule *s, int64_t step)
{
    int64_t warm = (int64_t)ceil(s->warmup * (double)s->steps);
    double u;

    if (step < warm)
        return s->peak * (double)(step + 1) / (double)warm;
    if (s->kind == SCHED_CONSTANT || s->steps <= warm)
        return s->peak;
    u = fmin(1.0, (double)(step - warm) / (double)(s->steps - warm));
    return s->peak * (s->floor + (1 - s->floor) * lr_schedule_shape_at(s->kind, u));
}

double schedule_warm(int64_t update, int64_t warm)
{
    return update < warm ? (double)(update + 1) / (double)warm : 1;
}

static double lr_schedule_lowest(const double *v, size_t n)
{
    double best = INFINITY;

    for (size_t i = 0; i < n; i++)
        best = fmin(best, v[i]);
    return best;
}

bool plateau_reached(const double *loss, size_t n, size_t patience, double tol)
{
    double before, after, scale;

    if (n < patience + 1)
        return false;
    before = lr_schedule_lowest(loss, n - patience);
    after = lr_schedule_lowest(loss + n - patience, patience);
    scale = fmax(before, loss[0] - fmin(before, after));
    return before - after <= tol * scale;
}
