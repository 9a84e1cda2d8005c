/* capsule.h - a kernel as it was judged, in one file: log, images, the values that were bound, the outputs expected.
 *
 * The file: "MCCAPS2\n", SHA-256 of all that follows (64 hexadecimal digits), the header's length (8 bytes, little
 * endian), a JSON header, then bytes that the header names by offset and length. A capsule is foreign data: checksum
 * and sizes are checked when it is read, its log when an executor adopts it. */
#ifndef MC_EXEC_CAPSULE_H
#define MC_EXEC_CAPSULE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "exec/exec.h"

struct capsule {
    json_t *head; /* "schema" "task" "backend" "device" "memory" "log" "images" "values" "outputs" "record" */
    struct buf data;
};

struct capsule_output {
    const char *name; /* "output", "output[1]" */
    uint64_t addr;
    uint32_t dtype, dims;
    int64_t size[WIRE_DIMS], stride[WIRE_DIMS]; /* elements */
    double atol, rtol;                          /* |got - want| <= atol + rtol |want| */
};

/* ---- writing, in this order ---- */
void capsule_init(struct capsule *c, const char *backend, const char *task, const char *device, uint64_t memory);
void capsule_free(struct capsule *c);
void capsule_add_log(struct capsule *c, const struct exec_log *log);
void capsule_add_image(struct capsule *c, const void *image, size_t n);
/* Each part that a replay's binding gives, in the order in which it is asked; equal parts are kept once. */
void capsule_add_value(struct capsule *c, const void *data, uint64_t n);
/* want: contiguous, row-major, of the output's dtype. */
void capsule_add_output(struct capsule *c, const struct capsule_output *o, const void *want);
int capsule_write(const struct capsule *c, const char *path, struct err *e);

/* ---- reading ---- */
int capsule_read(const char *path, struct capsule *ret, struct err *e);
const void *capsule_bytes(const struct capsule *c, const json_t *part, size_t *ret_n); /* NULL: not within the file */
int capsule_log(const struct capsule *c, struct exec_log *ret, struct err *e);

/* ---- running ---- */
struct capsule_result {
    bool right;
    uint64_t elements, wrong; /* over all outputs */
    double worst;             /* |got - want| - rtol |want|, at most; NaN where a value is none */
    char text[256];           /* the first output that is wrong; "" */
    int32_t error;            /* the device's, with why */
    char why[256];
};
/* In an executor of the capsule's backend. Leaves the state before the last call, for capsule_time. */
int capsule_run(const struct capsule *c, struct executor *x, uint8_t poison, struct capsule_result *ret, struct err *e);
int capsule_time(const struct capsule *c, struct executor *x, uint32_t n, double *ret_ms, struct executor_timing *ret,
                 struct err *e);

#endif
