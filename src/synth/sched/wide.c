/* wide.c - may a nest's loads be four floats at once? */
#include "synth/sched/sched.h"

/* Loads that walk the fast dimension; all of one operand at one place. */
static bool wide_loads(const struct nest *k, const char *fast, const struct ax *x, const struct ax *seen[], int *n)
{
    if (x->kind == AX_LOAD && ax_uses(x, fast)) {
        if (!nest_load_is_wide(k, x) || (seen[x->i] && !ax_equal(seen[x->i], x)))
            return false;
        for (int i = 0; i < x->n - 1; i++)
            if (ax_uses(x->kid[i], fast))
                return false;
        *n += !seen[x->i];
        seen[x->i] = x;
        return true;
    }
    for (int i = 0; i < x->n; i++)
        if (!wide_loads(k, fast, x->kid[i], seen, n))
            return false;
    return true;
}

bool sched_is_wide(const struct nest *k, const struct ax *x)
{
    const struct ax *seen[NEST_OPERANDS] = {NULL};
    int d[NEST_DIMS], n = 0;

    if (nest_group(k, k->class == NEST_MAP ? 0 : 1, d) != 1 || k->dim[d[0]].n < 4)
        return false;
    return wide_loads(k, k->dim[d[0]].name, x, seen, &n) && n > 0;
}
