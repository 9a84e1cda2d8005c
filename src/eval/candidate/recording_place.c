/* recording_place.c - see recording_place.h. */
#include "eval/candidate/recording_place.h"

#include <string.h>

#include "base/json.h"

#define MOST ((uint64_t)1 << 40) /* elements, and bytes */

/* last += (n - 1) * s; false: the tensor spans more than MOST. Products of several dimensions could wrap around. */
static bool place_reach(uint64_t *last, int64_t n, int64_t s)
{
    uint64_t step;

    if (n > 0 && __builtin_mul_overflow((uint64_t)(n - 1), (uint64_t)s, &step))
        return false;
    if (n > 0 && __builtin_add_overflow(*last, step, last))
        return false;
    return *last <= MOST;
}

int place_tensor(const json_t *node, struct recording_place *p, struct err *e)
{
    const json_t *shape = json_object_get(node, "shape"), *strides = json_object_get(node, "strides");
    uint64_t last = 0;

    memset(p, 0, sizeof *p);
    if (dt_parse(json_str(node, "dtype", ""), &p->t.dtype) < 0)
        return err_set(e, ERR_INPUT, "a tensor of type '%.40s'", json_str(node, "dtype", "?"));
    p->item = dt_size(p->t.dtype) * (size_t)dt_components(p->t.dtype);
    p->t.ndim = (int)json_array_size(shape);
    if (p->t.ndim > TENSOR_MAX_DIMS || json_array_size(strides) != json_array_size(shape))
        return err_set(e, ERR_INPUT, "a tensor of %d dimensions", p->t.ndim);
    p->t.n = 1;
    for (int i = 0; i < p->t.ndim; i++) {
        int64_t n = json_integer_value(json_array_get(shape, (size_t)i));
        int64_t s = json_integer_value(json_array_get(strides, (size_t)i));

        if (n < 0 || s < 0 || n > (int64_t)MOST || s > (int64_t)MOST ||
            (n && p->t.n > (int64_t)MOST / n) || !place_reach(&last, n, s))
            return err_set(e, ERR_INPUT, "a tensor of impossible size");
        p->t.shape[i] = n;
        p->stride[i] = s;
        p->t.n *= n;
    }
    p->address = (uint64_t)json_i64(node, "address", 0);
    p->span = p->t.n ? (last + 1) * p->item : 0;
    if (p->span > MOST)
        return err_set(e, ERR_INPUT, "a tensor that spans %llu bytes", (unsigned long long)p->span);
    return 0;
}

bool place_is_packed(const struct recording_place *p)
{
    int64_t n = 1;

    for (int i = p->t.ndim - 1; i >= 0; i--) {
        if (p->t.shape[i] > 1 && p->stride[i] != n)
            return false;
        n *= p->t.shape[i];
    }
    return true;
}

void recording_permute(const struct recording_place *p, uint8_t *strided, uint8_t *packed, bool to)
{
    int64_t at[TENSOR_MAX_DIMS] = {0}, offset = 0;

    if (place_is_packed(p)) {
        memcpy(to ? strided : packed, to ? packed : strided, (size_t)p->t.n * p->item);
        return;
    }
    for (int64_t i = 0; i < p->t.n; i++) {
        uint8_t *s = strided + (size_t)offset * p->item, *c = packed + (size_t)i * p->item;

        memcpy(to ? s : c, to ? c : s, p->item);
        for (int d = p->t.ndim - 1; d >= 0; d--) {
            offset += p->stride[d];
            if (++at[d] < p->t.shape[d])
                break;
            offset -= p->stride[d] * p->t.shape[d];
            at[d] = 0;
        }
    }
}
