/* fuzz_exec.c - any bytes in the ring: each message is refused, or it is about memory and handles of the life. Odd
 * inputs are read as a log from elsewhere instead. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exec/context.h"
#include "exec/order.h"
#include "exec/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct wire_info info = {.reserved = (uint64_t)1 << 36, .shared_optin = 1 << 17, .threads_block = 1024,
                                      .dim = {1024, 1024, 64}, .grid = {0x7fffffff, 65535, 65535}};

static void insist(bool holds)
{
    if (!holds)
        abort();
}

/* What an accepted request touches lies within one allocation. */
static void check_memory(const struct client_context *l, const struct wire_request *r)
{
    const union wire_body *b = &r->body;
    uint64_t n;

    switch (r->head.op) {
    case WIRE_MEMSET: insist(context_holds(l, b->MEMSET.addr, b->MEMSET.count * b->MEMSET.width)); break;
    case WIRE_UP: insist(context_holds(l, b->UP.addr, r->head.tail)); break;
    case WIRE_DOWN: insist(context_holds(l, b->DOWN.addr, b->DOWN.n) && b->DOWN.n <= WIRE_CHUNK); break;
    case WIRE_COPY: insist(context_holds(l, b->COPY.to, b->COPY.n) && context_holds(l, b->COPY.from, b->COPY.n)); break;
    case WIRE_STRIDED:
        insist(wire_view_span(b->STRIDED.to_dtype, b->STRIDED.dims, b->STRIDED.size, b->STRIDED.to_stride, &n));
        insist(!n || context_holds(l, b->STRIDED.to, n));
        break;
    case WIRE_LAUNCH: insist(b->LAUNCH.function < l->n_functions && b->LAUNCH.attrs <= WIRE_ATTRS); break;
    case WIRE_EVENT_RECORD: insist(l->events.live[b->EVENT_RECORD.event]); break;
    }
}

static void take(struct client_context *l, const void *msg, size_t n)
{
    struct wire_request r;
    uint64_t result = 0;

    if (!wire_parse(msg, n, &r) || context_take(l, &r, &result) != WIRE_OK)
        return;
    check_memory(l, &r);
    if (r.head.op == WIRE_DOWN)
        context_came_down(l, r.body.DOWN.addr, "", 0);
    context_log(l, &r, result, NULL);
}

static void as_messages(struct client_context *l, const uint8_t *data, size_t n)
{
    while (n >= sizeof(struct wire_head)) {
        struct wire_head h;
        void *copy;

        memcpy(&h, data, sizeof h);
        if (h.bytes < sizeof h || h.bytes > n || h.bytes > RING_MESSAGE)
            return;
        copy = malloc(h.bytes); /* its exact size: reading one byte too far shows */
        memcpy(copy, data, h.bytes);
        take(l, copy, h.bytes);
        free(copy);
        data += h.bytes;
        n -= h.bytes;
    }
}

static void read_log(const struct exec_log *l, bool whole)
{
    struct log_entry en;
    size_t at = 0;
    int more;

    while ((more = exec_log_next(l, &at, &en)) > 0)
        insist(exec_log_op_name(en.head.op) && en.tail + en.n_tail <= l->p + l->n);
    insist(!whole || more == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct client_context l;
    const struct wire_function_info f = {.max_threads = 1024, .max_dynamic = 49152, .args_bytes = 16};
    struct order_finding order;

    if (!l.info)
        context_init(&l, &info, (uint64_t)1 << 32);
    context_clear(&l);
    context_add_function(&l, context_add_module(&l, (const uint8_t *)"0123456789abcdef0123456789abcdef"), &f);
    if (n % 2) {
        memcpy(l.log.p, data, n);
        l.log.n = n;
        read_log(&l.log, false);
    } else {
        as_messages(&l, data, n);
        read_log(&l.log, true);
        if (n % 32 == 0) /* it takes a while */
            order_check(&l.log, 0, &order);
    }
    return 0;
}
