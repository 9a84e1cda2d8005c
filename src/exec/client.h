/* client.h - the client's side of the wire: what proxies of libcudart, libcuda and torch's device call.
 *
 * Plain C, libc only, built into libfront.so. Any thread may call anything at any time;
 * no call allocates. Functions return enum wire_code, which are CUDA's numbers. Those marked (queued) write one message
 * and return; what is wrong with them shows in client_error() or in a later reply, as on a real device. Those marked
 * (waits) cost a round trip; those marked (reads) also wait for the device and count as a read of it.
 *
 * Nothing here is trusted by the judge: it is the candidate's process. */
#ifndef MC_EXEC_CLIENT_H
#define MC_EXEC_CLIENT_H

#include "exec/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

struct client;

/* Maps the area, and the device's addresses without access so that nothing else lands there. The descriptors may be
 * closed afterwards: both are duplicated. One client a process; NULL with errno where it cannot be done. A forked
 * child must not use its parent's client. */
struct client *client_attach(int area_fd, int bell_fd);
const struct wire_info *client_info(const struct client *c);
int client_error(const struct client *c); /* the device's sticky error as far as it is known here; no round trip */
static inline int client_is_device(const struct client *c, const void *p)
{
    return (uintptr_t)p - WIRE_BASE < client_info(c)->reserved;
}

/* ---- memory. Sizes in bytes, addresses as numbers ---- */
int client_alloc(struct client *c, uint64_t bytes, uint32_t kind, uint32_t stream, uint64_t *ret_addr); /* waits */
int client_free(struct client *c, uint64_t addr, uint32_t kind, uint32_t stream);                       /* queued */
int client_memset(struct client *c, uint64_t addr, const void *value, uint32_t width, uint64_t count,
                  uint32_t stream); /* queued; width 1, 2, 4, 8 or 16 */
int client_up(struct client *c, uint64_t to, const void *from, uint64_t n, uint32_t stream);   /* queued, by chunks */
int client_down(struct client *c, void *to, uint64_t from, uint64_t n, uint32_t stream);       /* reads, by chunks */
int client_copy(struct client *c, uint64_t to, uint64_t from, uint64_t n, uint32_t stream);    /* queued */
int client_mem_info(struct client *c, uint64_t *ret_free, uint64_t *ret_total);                /* waits */

/* ---- data movement (queued); dtypes are base/dtype.h's; sizes and strides in elements ---- */
struct client_view {
    uint64_t addr;
    uint32_t dtype, dims;
    const int64_t *size, *stride;
};
int client_fill(struct client *c, const struct client_view *v, const void *value, uint32_t stream);
/* Sizes are to's; from has strides of as many dimensions (0 for expanded ones). Casts where dtypes differ. */
int client_strided(struct client *c, const struct client_view *to, const struct client_view *from, uint32_t stream);
int client_arange(struct client *c, uint64_t addr, uint64_t count, uint32_t dtype, double start, double step,
                  int64_t start_i, int64_t step_i, uint32_t stream);
int client_random(struct client *c, const struct wire_random *r);
int client_close_to(struct client *c, const struct client_view *a, const struct client_view *b, double rtol,
                    double atol, int equal_nan, int *ret_equal); /* reads; both 0: equal */

/* ---- code ---- */
int client_module(struct client *c, const uint8_t sha256[32], uint32_t *ret_module); /* waits */
/* name: n bytes, the mangled kernel on cuda, simt/image.h's text on sim. Waits; keep the answer. */
int client_function(struct client *c, uint32_t module, const char *name, uint32_t n, uint32_t *ret_function,
                    struct wire_function_info *ret_info);
/* The next three: waits, queued, waits. */
int client_symbol(struct client *c, uint32_t module, const char *name, uint64_t *ret_addr, uint64_t *ret_bytes);
int client_func_attr(struct client *c, uint32_t function, int32_t attr, int32_t value);
int client_occupancy(struct client *c, uint32_t function, uint32_t threads, uint64_t shared, int *ret_blocks);
/* Checks block, grid and shared memory against info (and fn's, if it is given), then queues. attr: n_attrs of them. */
struct client_launch {
    uint32_t function, stream;
    uint32_t grid[3], block[3];
    uint32_t shared, attrs;
    const struct wire_attr *attr;
    const void *args; /* one blob */
    uint32_t args_bytes;
    const struct wire_function_info *info; /* NULL: not checked here */
};
int client_launch(struct client *c, const struct client_launch *l);
/* The same for an array of pointers to arguments (cudaLaunchKernel): packs by info, which must be given. */
int client_launch_args(struct client *c, const struct client_launch *l, void *const *args);
int client_tensor_map(struct client *c, const struct wire_tensor_map *m, uint8_t ret[128]); /* waits */

/* ---- order. Synchronising is queued: the client learns nothing from it, so it need not wait ---- */
int client_stream_create(struct client *c, uint32_t flags, int32_t priority, uint32_t *ret_stream); /* waits */
int client_stream_destroy(struct client *c, uint32_t stream);
int client_stream_sync(struct client *c, uint32_t stream);
int client_stream_query(struct client *c, uint32_t stream); /* reads */
int client_event_create(struct client *c, uint32_t flags, uint32_t *ret_event); /* waits */
int client_event_destroy(struct client *c, uint32_t event);
int client_event_record(struct client *c, uint32_t event, uint32_t stream);
int client_event_wait(struct client *c, uint32_t stream, uint32_t event);
int client_event_sync(struct client *c, uint32_t event);
int client_event_query(struct client *c, uint32_t event);                          /* reads */
int client_event_elapsed(struct client *c, uint32_t from, uint32_t to, float *ms); /* reads */
int client_device_sync(struct client *c);
int client_fence(struct client *c); /* waits until the executor has taken all that was queued; not for the device */
int client_lack(struct client *c, enum wire_lack lack); /* queued */

/* ---- recording: queued messages that the recorder takes (true, with the caller's code) are not sent. client_repeat
 * sends one, and is not recorded. Which ones name a stream: client_stream_of; its place in the body, or NULL. ---- */
typedef bool client_recorder(unsigned op, const void *body, size_t n_body, const void *tail, size_t n_tail,
                             int *ret_code);
void client_record(struct client *c, client_recorder *record); /* NULL: no more */
int client_repeat(struct client *c, unsigned op, const void *body, const void *tail, size_t n_tail);
uint32_t *client_stream_of(unsigned op, void *body);
struct client_part {
    const void *p;
    size_t n;
};

#ifdef __cplusplus
}
#endif
#endif
