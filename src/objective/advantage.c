/* advantage.c - see advantage.h. Two passes in double: groups are small, exactness is cheap. */
#include "objective/advantage.h"

#include <math.h>
#include <string.h>

int advantage_kind_of(const char *name, enum advantage_kind *ret, struct err *e)
{
    static const char *const names[] = {"grpo", "rloo", "dr_grpo"};

    for (int i = 0; i < 3; i++)
        if (!strcmp(name, names[i])) {
            *ret = (enum advantage_kind)i;
            return 0;
        }
    return err_set(e, ERR_INPUT, "no advantage estimator '%s'; use grpo, rloo or dr_grpo", name);
}

static bool advantage_used(const bool *valid, size_t i)
{
    return !valid || valid[i];
}

/* Equal rewards carry no signal, though their mean may round to another number. A reward is a sum of a few products,
 * and two ways to the same sum may differ in the last bits: what is nearer than 1e-12 of its size is equal. */
static bool advantage_all_equal(const double *reward, const bool *valid, size_t n)
{
    size_t first = n;

    for (size_t i = 0; i < n; i++) {
        if (!advantage_used(valid, i))
            continue;
        if (first == n)
            first = i;
        if (fabs(reward[i] - reward[first]) > 1e-12 * fmax(1.0, fabs(reward[first])))
            return false;
    }
    return true;
}

/* The factor of centred rewards. sq: the sum of their squares; k: how many. */
static double advantage_group_scale(enum advantage_kind kind, double eps, double sq, size_t k)
{
    switch (kind) {
    case ADV_GRPO: return 1.0 / (sqrt(sq / (double)(k - 1)) + eps);
    case ADV_RLOO: return (double)k / (double)(k - 1);
    case ADV_DR_GRPO: break;
    }
    return 1.0;
}

int advantage_group(enum advantage_kind kind, double eps, const double *reward, const bool *valid, size_t n,
                    double *adv, struct err *e)
{
    double sum = 0, sq = 0, mean, scale;
    size_t k = 0;

    for (size_t i = 0; i < n; i++) {
        if (!advantage_used(valid, i))
            continue;
        if (!isfinite(reward[i]))
            return err_set(e, ERR_BUG, "reward of sample %zu is not finite; the verdict must be scored first", i);
        sum += reward[i];
        k++;
    }
    for (size_t i = 0; i < n; i++)
        adv[i] = 0;
    if (k < 2)
        return 0;
    if (advantage_all_equal(reward, valid, n))
        return (int)k;
    mean = sum / (double)k;
    for (size_t i = 0; i < n; i++)
        if (advantage_used(valid, i))
            sq += (reward[i] - mean) * (reward[i] - mean);
    scale = advantage_group_scale(kind, eps, sq, k);
    for (size_t i = 0; i < n; i++)
        if (advantage_used(valid, i))
            adv[i] = (reward[i] - mean) * scale;
    return (int)k;
}
