/* host_kernels.c - the kernels of judge_kernels.cu in plain C, one thread, same arguments and same answers: what the
 * host backend launches, and a second opinion for tests of the GPU's. */
#include "device/host_kernels.h"

#define PTR(type, address) ((type *)(uintptr_t)(address))

/* The offset in elements of flat element i of an operand. */
static int64_t host_kernels_offset_of(const struct k_diff *a, const struct k_operand *o, int64_t i)
{
    int64_t at = 0;

    for (int d = a->ndim - 1; d >= 0; d--) {
        at += i % a->shape[d] * o->stride[d];
        i /= a->shape[d];
    }
    return at;
}

struct host_element {
    double oracle, got;
};

static struct host_element host_kernels_read_element(const struct k_diff *a, int64_t i)
{
    return (struct host_element){el_value(PTR(void, a->oracle.ptr), a->oracle.dtype,
                                     host_kernels_offset_of(a, &a->oracle, i)),
                            el_value(PTR(void, a->got.ptr), a->got.dtype, host_kernels_offset_of(a, &a->got, i))};
}

static int64_t host_kernels_read_int(const struct k_diff *a, const struct k_operand *o, int64_t i)
{
    return el_int(PTR(void, o->ptr), o->dtype, host_kernels_offset_of(a, o, i));
}

/* True where element i is right; the tally counts it. */
static bool host_kernels_check_element(const struct k_diff *a, struct el_tally *t, int64_t i)
{
    struct host_element x = host_kernels_read_element(a, i);
    int64_t got;

    if (a->is_float)
        return el_float(t, i, x.oracle, x.got, &a->tol);
    got = host_kernels_read_int(a, &a->got, i);
    return el_exact(t, i, x.oracle, x.got,
                    got == host_kernels_read_int(a, &a->eager, i) ||
                    (a->oracle_counts && got == host_kernels_read_int(a, &a->oracle, i)));
}

/* The kernel 'diff' on the host: counts wrong elements and keeps the first and the worst. */
static void host_kernels_diff(const void *args)
{
    const struct k_diff *a = args;
    struct k_diff_result r = {.first_oracle = 0};
    struct host_element x;

    el_tally_init(&r.tally);
    for (int64_t i = 0; i < a->n; i++)
        host_kernels_check_element(a, &r.tally, i);
    if (r.tally.n_bad) {
        x = host_kernels_read_element(a, r.tally.first);
        r.first_oracle = x.oracle, r.first_got = x.got;
        x = host_kernels_read_element(a, r.tally.worst);
        r.worst_oracle = x.oracle, r.worst_got = x.got;
    }
    *PTR(struct k_diff_result, a->result) = r;
}

/* The kernel 'mark' on the host: one bit for each wrong element, and the relations that hold for all. */
static void host_kernels_mark(const void *args)
{
    const struct k_mark *a = args;
    uint32_t *mask = PTR(uint32_t, a->mask), *relations = PTR(uint32_t, a->relations);
    struct el_tally t;
    struct host_element x;

    el_tally_init(&t);
    for (int64_t i = 0; i < a->diff.n; i++) {
        if (i % 32 == 0)
            mask[i / 32] = 0;
        if (host_kernels_check_element(&a->diff, &t, i))
            continue;
        x = host_kernels_read_element(&a->diff, i);
        *relations &= (uint32_t)el_relation(x.oracle, x.got, a->first_oracle, a->first_got);
        mask[i / 32] |= 1u << (i % 32);
    }
}

/* Bit i of a mask of 32-bit words. */
static bool host_kernels_bit(const uint32_t *mask, int64_t i)
{
    return mask[i / 32] >> (i % 32) & 1;
}

/* The kernel 'group_count' on the host: wrong elements of each group. */
static void host_group_count(const void *args)
{
    const struct k_group_count *a = args;
    uint64_t *counts = PTR(uint64_t, a->counts);

    for (int64_t i = 0; i < a->n; i++) {
        int64_t k = i / a->inner % a->n_groups - a->from;

        if (k >= 0 && k < a->width)
            counts[k] += host_kernels_bit(PTR(uint32_t, a->mask), i);
    }
}

/* The kernel 'group_sum' on the host: which groups are wrong in at least 8 of 10 elements. */
static void host_group_sum(const void *args)
{
    const struct k_group_sum *a = args;
    struct k_group_result *r = PTR(struct k_group_result, a->result);
    uint32_t *wrong = PTR(uint32_t, a->wrong);

    for (int64_t k = 0; k < a->width; k++) {
        int64_t n = PTR(int64_t, a->counts)[k], at = a->from + k;

        if (at % 32 == 0)
            wrong[at / 32] = 0;
        if (n * 10 < a->per * 8) {
            r->stray += n;
            continue;
        }
        wrong[at / 32] |= 1u << (at % 32);
        r->n_bad++;
        r->first = at < r->first ? at : r->first;
        r->last = at > r->last ? at : r->last;
    }
}

/* The kernel 'group_step' on the host: whether wrong groups are evenly spaced. */
static void host_group_step(const void *args)
{
    const struct k_group_step *a = args;

    for (int64_t k = 0; k < a->n_groups; k++)
        if (host_kernels_bit(PTR(uint32_t, a->wrong), k) && (k - a->first) % a->step)
            PTR(struct k_group_result, a->result)->uneven = 1;
}

/* The kernel 'checksum' on the host: adds n bytes' sum to the result. */
static void host_checksum(const void *args)
{
    const struct k_checksum *a = args;
    const uint8_t *p = PTR(uint8_t, a->p);

    for (int64_t at = 0; at < a->n; at += 8)
        *PTR(uint64_t, a->result) += el_mix(el_word(p, at, a->n), a->first + (uint64_t)at / 8);
}

/* Runs kernel k of judge_kernels.h on the calling thread; args: its struct. */
void host_kernel(enum kernel_id k, const void *args)
{
    static void (*const kernels[K_COUNT])(const void *) = {
        [K_MARK] = host_kernels_mark, [K_GROUP_COUNT] = host_group_count,
        [K_GROUP_SUM] = host_group_sum, [K_GROUP_STEP] = host_group_step, [K_CHECKSUM] = host_checksum,
    };

    if (kernels[k])
        kernels[k](args);
    else
        host_kernels_diff(args); /* all variants mean the same */
}
