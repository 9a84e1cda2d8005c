/* minibatch.c - see minibatch.h. */
#include "train/minibatch.h"

/* How many runs of equal numbers. */
static size_t minibatch_count_groups(const int *group, size_t n)
{
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        k += i == 0 || group[i] != group[i - 1];
    return k;
}

void minibatch_cut(const int *group, size_t n, int parts, size_t *cut)
{
    size_t groups = minibatch_count_groups(group, n), seen = 0;
    int part = 0;

    for (size_t i = 0; i < n; i++) {
        if (i > 0 && group[i] == group[i - 1])
            continue;
        while (part < parts && seen >= groups * (size_t)part / (size_t)parts)
            cut[part++] = i;
        seen++;
    }
    for (; part <= parts; part++)
        cut[part] = n;
}
