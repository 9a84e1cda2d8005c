/* compare_device.c - see compare_device.h. */
#include "eval/check/compare_device.h"

#include <string.h>

#include "eval/check/compare_parts.h"

/* Shape and dtype of a view, for texts; no data. */
static struct tensor compare_device_tensor_of(const struct device_view *v)
{
    struct tensor t = {.dtype = v->dtype, .ndim = v->ndim, .n = device_view_numel(v) * dt_components(v->dtype)};

    memcpy(t.shape, v->shape, sizeof t.shape);
    return t;
}

struct grouping {
    struct device_marks marks;
    bool failed;
};

/* A callback of compare: facts of groups, counted on the device. */
static void compare_device_group(void *ctx, int64_t inner, int64_t n_groups, struct compare_groups *ret)
{
    struct grouping *x = ctx;
    struct device_groups g;

    if (x->failed || device_marks_group(&x->marks, inner, n_groups, &g, NULL) < 0) {
        x->failed = true;
        return;
    }
    *ret = (struct compare_groups){n_groups, g.n_bad, g.first, g.last, g.stray, g.step};
}

/* What the marks say about the wrong elements. A device that fails here costs the diagnosis, not the verdict. */
static void compare_device_diagnose(struct grouping *x, const struct tensor *got, struct comparison *c)
{
    struct compare_source s = {c->n, c->n_bad, x->marks.diff.first, x->marks.diff.last, compare_device_group, x};
    int64_t shape[TENSOR_MAX_DIMS + 1];
    char what[80], where[80];
    int nd = compare_real_shape(got->shape, got->ndim, got->dtype, shape);

    compare_pattern_of(&s, shape, nd, where, sizeof where);
    compare_relation_text(c, x->marks.constant, x->marks.scaled, x->marks.shifted, what, sizeof what);
    compare_describe(c, got, x->failed ? "" : where, what);
}

int device_compare(struct device *d, const struct device_view *eager, const struct device_view *oracle,
                   const struct device_view *got, const struct tolerance *tol, struct comparison *ret, struct err *e)
{
    struct device_tolerance t = {tol->abs, tol->rel, tol->allclose};
    struct tensor want = compare_device_tensor_of(eager), have = compare_device_tensor_of(got);
    struct grouping x = {.failed = false};
    struct device_diff diff;
    struct comparison c;

    if (!compare_kinds(&want, &have, &c)) {
        *ret = c;
        return 0;
    }
    if (device_diff(d, eager, oracle, got, &t, &diff, e) < 0)
        return -1;
    c.n_bad = diff.n_bad, c.n_nan = diff.n_nan, c.n_unwritten = -1;
    c.max_abs = diff.max_abs, c.max_rel = diff.max_rel;
    c.first = diff.first, c.worst = diff.worst;
    c.first_expected = diff.first_oracle, c.first_got = diff.first_got;
    c.worst_expected = diff.worst_oracle, c.worst_got = diff.worst_got;
    if (diff.n_bad) {
        c.kind = CMP_VALUES;
        if (device_mark(d, eager, oracle, got, &t, &diff, &x.marks, NULL) == 0) {
            compare_device_diagnose(&x, &have, &c);
            device_marks_free(&x.marks);
        } else {
            compare_describe(&c, &have, "", "");
        }
    }
    if (device_lost(d))
        return err_set(e, ERR_ENV, "the device was lost while outputs were compared");
    *ret = c;
    return 0;
}
