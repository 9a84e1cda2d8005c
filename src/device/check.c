/* check.c - the kernels' callers: compare, mark, group, checksum. Each prepares arguments, launches, and
 * reads back a few bytes of the device's scratch memory. */
#include <stddef.h>
#include <string.h>

#include "device/device_backend.h"

_Static_assert((int)EL_BOOL == DT_BOOL && (int)EL_I64 == DT_I64 && (int)EL_F16 == DT_F16 && (int)EL_BF16 == DT_BF16 &&
                   (int)EL_F32 == DT_F32 && (int)EL_F64 == DT_F64 && (int)EL_C128 == DT_C128 &&
                   (int)EL_F8E4 == DT_F8E4 && (int)EL_F8E5 == DT_F8E5,
               "element.h numbers dtypes as base/dtype.h does");

#define SLAB ((int64_t)1 << 22) /* groups that are counted at once: 32 MB of counters */

static int check_result_set(struct device *d, const void *v, size_t n, struct err *e)
{
    return device_upload(&d->scratch, offsetof(struct device_scratch, result), v, n, e);
}

static int check_result_get(struct device *d, void *v, size_t n, struct err *e)
{
    return device_download(&d->scratch, offsetof(struct device_scratch, result), v, n, e);
}

/* ---- compare ---- */

/* Fills *o from a view; strides count parts of complex numbers. */
static void check_operand_set(struct k_operand *o, const struct device_view *v)
{
    int nd = v->ndim, comp = dt_components(v->dtype);

    *o = (struct k_operand){.ptr = v->ptr, .dtype = (int32_t)v->dtype};
    for (int d = 0; d < nd; d++)
        o->stride[d] = v->strides[d] * comp;
    if (comp == 2)
        o->stride[nd] = 1;
}

/* Removes dimension d, which is of size 1 or was merged. */
static void check_drop_dim(struct k_diff *a, int d)
{
    struct k_operand *ops[] = {&a->eager, &a->oracle, &a->got};
    size_t rest = (size_t)(a->ndim - d - 1);

    memmove(a->shape + d, a->shape + d + 1, rest * sizeof a->shape[0]);
    for (int k = 0; k < 3; k++)
        memmove(ops[k]->stride + d, ops[k]->stride + d + 1, rest * sizeof ops[k]->stride[0]);
    a->ndim--;
}

/* True if dimension d goes on where d + 1 ends, so that both can be walked as one. */
static bool check_joins(const struct k_operand *o, int d, int64_t size)
{
    return o->stride[d] == o->stride[d + 1] * size;
}

/* Drops dimensions of size 1 and merges d with d + 1 where every operand steps through both as through one. */
static void check_merge_dims(struct k_diff *a)
{
    for (int d = a->ndim - 1; d >= 0; d--)
        if (a->shape[d] == 1 && a->ndim > 1)
            check_drop_dim(a, d);
    for (int d = a->ndim - 2; d >= 0; d--) {
        int64_t inner = a->shape[d + 1];

        if (check_joins(&a->eager, d, inner) && check_joins(&a->oracle, d, inner) && check_joins(&a->got, d, inner)) {
            a->shape[d + 1] *= a->shape[d];
            check_drop_dim(a, d);
        }
    }
    a->contiguous = a->ndim == 1 && (a->n == 1 || (a->eager.stride[0] == 1 && a->oracle.stride[0] == 1 &&
                                                   a->got.stride[0] == 1));
}

static bool check_same_shape(const struct device_view *a, const struct device_view *b)
{
    return a->ndim == b->ndim && !memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof a->shape[0]) &&
           dt_components(a->dtype) == dt_components(b->dtype);
}

/* Fills *ret for the kernel that compares got with oracle under tol. ERR_BUG: shapes or dtypes do not fit. */
static int check_diff_args(struct device *d, const struct device_view *eager, const struct device_view *oracle,
                           const struct device_view *got, const struct device_tolerance *tol, struct k_diff *ret,
                           struct err *e)
{
    struct k_diff a = {.is_float = dt_is_float(got->dtype), .oracle_counts = oracle->dtype == eager->dtype};
    size_t align = 2 * dt_size(got->dtype), oracle_align = 2 * dt_size(oracle->dtype);

    if (eager->dtype != got->dtype || !check_same_shape(eager, got) || !check_same_shape(oracle, got))
        return err_set(e, ERR_BUG, "device_diff compares tensors of one shape and dtype");
    check_operand_set(&a.eager, eager);
    check_operand_set(&a.oracle, oracle);
    check_operand_set(&a.got, got);
    memcpy(a.shape, got->shape, sizeof got->shape);
    a.ndim = got->ndim;
    if (dt_components(got->dtype) == 2 || a.ndim == 0)
        a.shape[a.ndim++] = dt_components(got->dtype);
    a.n = device_view_numel(got) * dt_components(got->dtype);
    a.tol = (struct el_tolerance){tol->abs, tol->rel, tol->allclose, 0};
    check_merge_dims(&a);
    a.vector = got->ptr % align == 0 && oracle->ptr % oracle_align == 0;
    a.wide = got->ptr % 16 == 0 && oracle->ptr % 16 == 0;
    a.partial = SCRATCH(d, partial);
    a.result = SCRATCH(d, result);
    a.arrivals = SCRATCH(d, arrivals);
    *ret = a;
    return 0;
}

/* The fastest kernel for these operands: the real components decide, so complex tensors count as floats. */
static enum kernel_id check_diff_kernel(const struct k_diff *a)
{
    static const struct {
        int got, oracle;
        enum kernel_id k;
    } rows[] = {{EL_F16, EL_F64, K_DIFF_F16_F64}, {EL_BF16, EL_F64, K_DIFF_BF16_F64},
                {EL_F32, EL_F64, K_DIFF_F32_F64}, {EL_C64, EL_C128, K_DIFF_F32_F64},
                {EL_F64, EL_F64, K_DIFF_F64_F64}, {EL_C128, EL_C128, K_DIFF_F64_F64},
                {EL_F16, EL_F16, K_DIFF_F16_F16}, {EL_BF16, EL_BF16, K_DIFF_BF16_BF16},
                {EL_F32, EL_F32, K_DIFF_F32_F32}, {EL_C64, EL_C64, K_DIFF_F32_F32}};

    if (!a->contiguous)
        return K_DIFF_ANY;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].got == a->got.dtype && rows[i].oracle == a->oracle.dtype)
            return rows[i].k;
    if (!a->is_float && a->got.dtype == a->oracle.dtype && a->got.ptr % 16 == 0 && a->oracle.ptr % 16 == 0)
        return K_DIFF_EXACT;
    return K_DIFF_ANY;
}

/* Takes the device's tally of n elements over into ret. */
static void check_diff_take(const struct k_diff_result *r, int64_t n, struct device_diff *ret)
{
    *ret = (struct device_diff){n, r->tally.n_bad, r->tally.n_nan, r->tally.first, r->tally.last, r->tally.worst,
                                r->tally.max_abs, r->tally.max_rel, r->first_oracle, r->first_got, r->worst_oracle,
                                r->worst_got};
}

int device_diff(struct device *d, const struct device_view *eager, const struct device_view *oracle,
                const struct device_view *got, const struct device_tolerance *tol, struct device_diff *ret,
                struct err *e)
{
    struct k_diff a;
    struct k_diff_result r = {.first_oracle = 0};

    if (device_need_kernels(d, e) < 0 || check_diff_args(d, eager, oracle, got, tol, &a, e) < 0)
        return -1;
    el_tally_init(&r.tally);
    if (a.n && (d->be->launch(d, check_diff_kernel(&a), device_blocks(d, (a.n + 7) / 8), &a, e) < 0 ||
                check_result_get(d, &r, sizeof r, e) < 0))
        return -1;
    check_diff_take(&r, a.n, ret);
    return 0;
}

/* ---- where the wrong ones are ---- */

int device_mark(struct device *d, const struct device_view *eager, const struct device_view *oracle,
                const struct device_view *got, const struct device_tolerance *tol, const struct device_diff *diff,
                struct device_marks *ret, struct err *e)
{
    const size_t at = offsetof(struct device_scratch, relations);
    struct device_marks m = {.dev = d, .diff = *diff};
    struct k_mark a = {
        .first_oracle = diff->first_oracle, .first_got = diff->first_got, .relations = SCRATCH(d, relations)};
    uint32_t held = EL_RELATIONS;

    if (device_need_kernels(d, e) < 0 || check_diff_args(d, eager, oracle, got, tol, &a.diff, e) < 0 ||
        device_alloc(d, (size_t)(diff->n + 31) / 32 * 4, DEVICE_PLAIN, &m.mask, e) < 0)
        return -1;
    a.mask = m.mask.ptr;
    if (device_upload(&d->scratch, at, &held, sizeof held, e) < 0 ||
        (diff->n && d->be->launch(d, K_MARK, device_blocks(d, diff->n), &a, e) < 0) ||
        device_download(&d->scratch, at, &held, sizeof held, e) < 0) {
        device_free(&m.mask);
        return -1;
    }
    m.constant = held & EL_CONSTANT;
    m.scaled = held & EL_SCALED;
    m.shifted = held & EL_SHIFTED;
    *ret = m;
    return 0;
}

void device_marks_free(struct device_marks *m)
{
    device_free(&m->mask);
}

static int64_t check_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* Counts groups [from, from + width) and adds them to the summary in scratch. */
static int check_group_slab(struct device_marks *m, int64_t inner, int64_t n_groups, int64_t from,
                            struct device_buf *counts, struct device_buf *wrong, struct err *e)
{
    struct device *d = m->dev;
    int64_t n = m->diff.n, width = n_groups - from < SLAB ? n_groups - from : SLAB;
    struct k_group_count a = {
        m->mask.ptr, counts->ptr, n, inner, n_groups, from, width, inner < 4096 ? inner : 4096, 0, 0};
    struct k_group_sum s = {counts->ptr, wrong->ptr, SCRATCH(d, result), n / n_groups, from, width};

    a.pieces = check_ceil_div(inner, a.piece);
    a.items = check_ceil_div(check_ceil_div(n, inner), n_groups) * width * a.pieces;
    return device_memset(counts, 0, 0, (size_t)width * 8, e) < 0 ||
                   d->be->launch(d, K_GROUP_COUNT, device_blocks(d, a.items), &a, e) < 0 ||
                   d->be->launch(d, K_GROUP_SUM, device_blocks(d, width), &s, e) < 0
               ? -1
               : 0;
}

/* The distance between wrong groups, if it is always the same: then it is this quotient and all leave one remainder. */
static int check_group_step(struct device_marks *m, struct device_buf *wrong, int64_t n_groups,
                            struct k_group_result *r, int64_t *ret, struct err *e)
{
    struct k_group_step a = {wrong->ptr, SCRATCH(m->dev, result), n_groups, r->first, 0};

    *ret = 0;
    if (r->n_bad < 2 || (r->last - r->first) % (r->n_bad - 1))
        return 0;
    a.step = (r->last - r->first) / (r->n_bad - 1);
    if (m->dev->be->launch(m->dev, K_GROUP_STEP, device_blocks(m->dev, n_groups), &a, e) < 0 ||
        check_result_get(m->dev, r, sizeof *r, e) < 0)
        return -1;
    *ret = r->uneven ? 0 : a.step;
    return 0;
}

/* Counts wrong elements for each of n_groups groups, slab by slab, and fills *ret with the pattern's facts. */
static int check_group_all(struct device_marks *m, int64_t inner, int64_t n_groups, struct device_buf *counts,
                           struct device_buf *wrong, struct device_groups *ret, struct err *e)
{
    struct k_group_result r = {0, INT64_MAX, -1, 0, 0};
    int64_t step;

    if (check_result_set(m->dev, &r, sizeof r, e) < 0)
        return -1;
    for (int64_t from = 0; from < n_groups; from += SLAB)
        if (check_group_slab(m, inner, n_groups, from, counts, wrong, e) < 0)
            return -1;
    if (check_result_get(m->dev, &r, sizeof r, e) < 0 || check_group_step(m, wrong, n_groups, &r, &step, e) < 0)
        return -1;
    *ret = (struct device_groups){r.n_bad, r.n_bad ? r.first : -1, r.last, r.stray, step};
    return 0;
}

int device_marks_group(struct device_marks *m, int64_t inner, int64_t n_groups, struct device_groups *ret,
                       struct err *e)
{
    struct device_buf counts = {0}, wrong = {0};
    int rc;

    if (inner < 1 || n_groups < 1 || m->diff.n < n_groups)
        return err_set(e, ERR_BUG, "%lld groups of %lld elements", (long long)n_groups, (long long)m->diff.n);
    if (device_alloc(m->dev, (size_t)(n_groups < SLAB ? n_groups : SLAB) * 8, DEVICE_PLAIN, &counts, e) < 0)
        return -1;
    rc = device_alloc(m->dev, (size_t)(n_groups + 31) / 32 * 4, DEVICE_PLAIN, &wrong, e);
    if (rc == 0)
        rc = check_group_all(m, inner, n_groups, &counts, &wrong, ret, e);
    device_free(&wrong);
    device_free(&counts);
    return rc;
}

/* ---- bytes ---- */

int device_checksum(const struct device_buf *b, size_t at, size_t n, uint64_t first, uint64_t *ret, struct err *e)
{
    struct device *d = b->dev;
    struct k_checksum a;
    uint64_t sum = 0;

    if (device_in_range(b, at, n, e) < 0 || device_need_kernels(d, e) < 0)
        return -1;
    a = (struct k_checksum){b->ptr + at, SCRATCH(d, result), (int64_t)n, first};
    if (check_result_set(d, &sum, sizeof sum, e) < 0 ||
        d->be->launch(d, K_CHECKSUM, device_blocks(d, (int64_t)(n / 32)), &a, e) < 0 ||
        check_result_get(d, &sum, sizeof sum, e) < 0)
        return -1;
    *ret = sum;
    return 0;
}

