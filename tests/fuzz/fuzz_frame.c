/* fuzz_frame.c - any bytes from a candidate's process: refused with one line, or a frame whose tensors lie inside it.
 * Tensor nodes are what eval reads them as: in the tree under "value", every element read. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "eval/check/tensor.h"
#include "proc/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile double sink;

static int read_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    const struct frame *f = ctx;
    struct tensor t;
    char shape[64];

    if (!path)
        abort();
    if (!tree_is_tensor(leaf) || tensor_parse(leaf, (const uint8_t *)f->blob, f->n_blob, &t, e) < 0)
        return 0;
    if (t.n < 0 || t.ndim < 0 || t.ndim > TENSOR_MAX_DIMS)
        abort();
    for (int64_t i = 0; i < t.n; i++)
        sink = tensor_at(&t, i);
    tensor_shape_text(&t, shape, sizeof shape);
    return 0;
}

static void read_frame(const struct frame *f)
{
    struct err e = ERR_INIT;
    const json_t *desc = json_object_get(f->head, "value");

    tree_each(desc, read_leaf, (void *)f, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    enum frame_fault fault = FRAME_OK;
    struct err e = ERR_INIT;
    struct frame f;
    int sv[2];

    log_set_level(LOG_ERROR);
    if (n > 100000) /* more than a socket holds */
        return 0;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv) < 0 || write(sv[0], data, n) != (ssize_t)n)
        abort();
    shutdown(sv[0], SHUT_WR);
    if (frame_recv(sv[1], 0, 0, now_s() + 10, &f, &fault, &e) == 0) {
        read_frame(&f);
        frame_free(&f);
    } else if (fault == FRAME_OK || fault == FRAME_LATE || !e.msg[0] || strchr(e.msg, '\n')) {
        abort();
    }
    close(sv[0]);
    close(sv[1]);
    return 0;
}
