/* wire.c - the table of requests and the taking apart of a message. Pure: no memory of its own, no shared memory. */
#include "exec/wire.h"

#include <string.h>

#include "base/dtype.h"

static const struct wire_op_state {
    const char *name;
    uint32_t size, max_tail, kind;
} ops[WIRE_OP_COUNT] = {
#define WIRE_ROW(name, type, tail, kind) [WIRE_##name] = {#name, sizeof(struct type), tail, kind},
    WIRE_OPS(WIRE_ROW)
#undef WIRE_ROW
};

#define WIRE_ALIGNED(name, type, tail, kind) _Static_assert(sizeof(struct type) % 8 == 0, #name);
WIRE_OPS(WIRE_ALIGNED)
#undef WIRE_ALIGNED

const char *wire_name(unsigned op)
{
    return op < WIRE_OP_COUNT ? ops[op].name : NULL;
}

unsigned wire_kind(unsigned op)
{
    return op < WIRE_OP_COUNT ? ops[op].kind : 0;
}

size_t wire_size(unsigned op)
{
    return op < WIRE_OP_COUNT ? ops[op].size : 0;
}

size_t wire_message(unsigned op, size_t tail)
{
    return sizeof(struct wire_head) + wire_size(op) + (tail + 7) / 8 * 8;
}

/* True where operation, lengths and tail of a message of n bytes agree. */
static bool wire_head_fits(const struct wire_head *h, size_t n)
{
    const struct wire_op_state *o = h->op < WIRE_OP_COUNT ? &ops[h->op] : NULL;

    if (!o || h->tail > o->max_tail || h->bytes != n || n != wire_message(h->op, h->tail))
        return false;
    if (o->kind & WIRE_REPLIES)
        return h->slot < WIRE_SLOTS && h->ticket;
    return h->slot == WIRE_NO_REPLY;
}

bool wire_parse(const void *msg, size_t n, struct wire_request *ret)
{
    const uint8_t *p = msg;

    if (n < sizeof ret->head)
        return false;
    memcpy(&ret->head, p, sizeof ret->head);
    if (!wire_head_fits(&ret->head, n))
        return false;
    memcpy(&ret->body, p + sizeof ret->head, ops[ret->head.op].size);
    ret->tail = p + sizeof ret->head + ops[ret->head.op].size;
    return true;
}

/* ---- views ---- */

bool wire_view_span(uint32_t dtype, uint32_t dims, const int64_t *size, const int64_t *stride, uint64_t *ret_bytes)
{
    const int64_t most = (int64_t)1 << 48;
    int64_t last = 0;
    bool empty = false;

    if (dtype >= DT_COUNT || dims > WIRE_DIMS)
        return false;
    for (uint32_t i = 0; i < dims; i++) {
        int64_t reach;

        if (size[i] < 0 || stride[i] < 0 || size[i] > most || stride[i] > most)
            return false;
        empty |= size[i] == 0;
        if (size[i] > 1 && (__builtin_mul_overflow(size[i] - 1, stride[i], &reach) || reach > most ||
                            (last += reach) > most))
            return false;
    }
    *ret_bytes = empty ? 0 : (uint64_t)(last + 1) * dt_size((enum dtype)dtype) * (dtype >= DT_C64 ? 2u : 1u);
    return true;
}

/* Dimensions in the order of their strides: each must step over all that the smaller ones reach. */
bool wire_view_injective(uint32_t dims, const int64_t *size, const int64_t *stride)
{
    bool used[WIRE_DIMS] = {false};
    int64_t reach = 0;

    for (uint32_t n = 0; n < dims; n++) {
        uint32_t k = dims;

        for (uint32_t i = 0; i < dims; i++)
            if (!used[i] && (k == dims || stride[i] < stride[k]))
                k = i;
        used[k] = true;
        if (size[k] == 0)
            return true;
        if (size[k] == 1)
            continue;
        if (stride[k] <= reach)
            return false;
        reach += (size[k] - 1) * stride[k];
    }
    return true;
}
