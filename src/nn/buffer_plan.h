/* buffer_plan.h - where each buffer of a phase lies in one slab, decided before the first step.
 *
 * A buffer lives from one phase to another; two buffers share bytes when they never live together. The sum that is
 * refused is the sum that is allocated. Pure: no memory is touched here. */
#ifndef MC_NN_BUFFER_PLAN_H
#define MC_NN_BUFFER_PLAN_H

#include <stddef.h>

#include "base/err.h"

#define PLAN_MAX 64

struct plan_item {
    const char *name;   /* for the budget; NULL: counted with the item before */
    size_t bytes;       /* rounded up to 256 */
    int from, to;       /* phases in which it lives, both included */
    void **where;       /* set by plan_place */
    size_t at;          /* offset, set by plan_layout */
};

struct buffer_plan {
    struct plan_item item[PLAN_MAX];
    int n;
    size_t bytes;       /* of the slab, set by plan_layout */
};

/* where: a pointer's address */
void plan_add(struct buffer_plan *p, const char *name, size_t bytes, int from, int to, void *where);
/* largest first, each at the lowest place that is free in its phases */
void plan_layout(struct buffer_plan *p);
void plan_place(const struct buffer_plan *p, char *slab);
/* ERR_ENV when bytes + others exceed max: what is needed, what is there, and every item above 1 % of it. advice: the
 * remedy. */
int plan_check(const struct buffer_plan *p, size_t others, const char *others_are, size_t max, const char *advice,
               struct err *e);

#endif
