/* schedule.c - see schedule.h. */
#include "train/schedule.h"

#include <math.h>
#include <string.h>

int schedule_check(const struct schedule *s, struct err *e)
{
    if (!(s->peak > 0 && s->peak <= 1))
        return err_set(e, ERR_INPUT, "lr is %g; use more than 0, at most 1, such as 1e-5", s->peak);
    if (!(s->warmup >= 0 && s->warmup <= 1) || !(s->floor >= 0 && s->floor <= 1))
        return err_set(e, ERR_INPUT, "warmup is %g and lr-floor %g; both are shares, 0 to 1", s->warmup, s->floor);
    return 0;
}

int schedule_kind_of(const char *name, enum schedule_kind *ret, struct err *e)
{
    static const char *const names[] = {"constant", "linear", "cosine"};

    for (int i = 0; i < 3; i++)
        if (!strcmp(name, names[i])) {
            *ret = (enum schedule_kind)i;
            return 0;
        }
    return err_set(e, ERR_INPUT, "no schedule '%s'; use constant, linear or cosine", name);
}

double schedule_lr(const struct schedule *s, int64_t step)
{
    int64_t warm = (int64_t)ceil(s->warmup * (double)s->steps);
    double u, shape;

    if (step < warm)
        return s->peak * (double)(step + 1) / (double)warm;
    if (s->kind == SCHED_CONSTANT || s->steps <= warm)
        return s->peak;
    u = fmin(1.0, (double)(step - warm) / (double)(s->steps - warm));
    shape = s->kind == SCHED_LINEAR ? 1 - u : 0.5 * (1 + cos(acos(-1.0) * u));
    return s->peak * (s->floor + (1 - s->floor) * shape);
}

static double lowest(const double *v, size_t n)
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
    before = lowest(loss, n - patience);
    after = lowest(loss + n - patience, patience);
    scale = fmax(before, loss[0] - fmin(before, after));
    return before - after <= tol * scale;
}
