/* compare_parts.h - private to eval: what compare.c (on the CPU) and compare_device.c (on the judge's device) share, so
 * that both say the same about the same output. Pure. */
#ifndef MC_COMPARE_PARTS_H
#define MC_COMPARE_PARTS_H

#include "eval/check/compare.h"

/* One way to cut the elements into groups: that of element i is i / inner % n. Wrong: at least 80 % of it is. */
struct compare_groups {
    int64_t n, n_bad, first, last, stray; /* groups; wrong ones; -1 if none; wrong elements outside wrong groups */
    int64_t step;                         /* constant distance between wrong groups, 0 if none */
};

/* Where the wrong elements are, for whoever asks how they lie. */
struct compare_source {
    int64_t n, n_bad, first, last;
    void (*group)(void *ctx, int64_t inner, int64_t n_groups, struct compare_groups *ret);
    void *ctx;
};

/* As compare_pattern, of marks that are somewhere else. */
void compare_pattern_of(const struct compare_source *s, const int64_t *shape, int ndim, char *out, size_t n);

/* Shape and dtype: fills *ret; true if values remain to be compared. Needs no data. */
bool compare_kinds(const struct tensor *eager, const struct tensor *got, struct comparison *ret);
/* Shape of the real components: complex tensors get a last dimension of 2. ret has ndim + 1 places. */
int compare_real_shape(const int64_t *shape, int ndim, enum dtype dtype, int64_t *ret);
/* "got = expected * 2", from c's first wrong element; "" if they have nothing in common. */
void compare_relation_text(const struct comparison *c, bool constant, bool scaled, bool shifted, char *out, size_t n);
/* Writes pattern, first_at and worst_at. t: shape and dtype. */
void compare_describe(struct comparison *c, const struct tensor *t, const char *where, const char *what);

#endif
