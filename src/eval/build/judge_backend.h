/* judge_backend.h - where candidates run: one row per backend. Stages ask the row and never the name. A new backend is
 * one file: judge_backend_NAME.c defines its row, backend_NAME, and its target of the compile stage (build_target.h);
 * the Makefile lists these files. A driver with CUDA's interface is a row of device/cuda_driver.c too. */
#ifndef MC_EVAL_BUILD_JUDGE_BACKEND_H
#define MC_EVAL_BUILD_JUDGE_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends_list.h"
#include "base/err.h"

struct build_target;

/* What a card is; text is owned (device_facts_free). */
struct device_facts {
    char *name, *uuid, *arch; /* uuid, arch: NULL where there are none */
    size_t memory;            /* bytes; 0: not known */
};
void device_facts_free(struct device_facts *f);

struct judge_backend {
    const char *name;
    const char *device;       /* runner/ package of the fork server and its children: $MUSACODER_DEVICE */
    const char *client_device; /* that of candidates, where it is another one: a fork server of their own; else NULL */
    const char *candidate, *reference, *baseline; /* roles of runner/main.py; baseline only where timed */
    const char *clock;        /* where timed: the judge's own device (device.h) */
    const char *place;        /* where timed: torch's name of the device */
    const struct build_target *target; /* how candidates are compiled */
    bool on_device;           /* the reference runs there too: one judge owns the device, children get its nodes */
    const char *test_variable; /* where it is set, for tests without a GPU, for_tests stands for this row */
    const struct judge_backend *for_tests;
    bool timed;               /* speed is measured: stage performance, and the reward's speed term */
    int slots;                /* candidates on the device at once; 0: as many as run at all */
    size_t memory_bytes;      /* host memory of a candidate, resident; 0: JAIL_MEMORY */
    size_t reference_memory_bytes;
    int64_t max_elements;     /* of a task's largest tensor, where the caller sets none; 0: no limit but memory */
    /* Is everything there but the compiler, and what is it? ERR_ENV with one sentence that names what is missing and
     * the remedy. Makes no context. NULL: there is no device. */
    int (*look)(struct device_facts *ret, struct err *e);
    /* "KEY=VALUE" for the fork server; NULL-terminated and owned by the caller (names_free). NULL: none. */
    char **(*env)(size_t *ret_n);
    /* Device nodes that children may use, and folders outside /usr that they must read; as env. NULL: none. */
    char **(*devices)(size_t *ret_n);
    char **(*folders)(size_t *ret_n);
};

/* What rows have in common: candidates without a device of their own and a reference on the CPU; and, for tests of
 * timing without a GPU, the machine's clock, whose figures mean nothing. */
#define BACKEND_ON_CPU                                                                                                \
    .device = "front", .candidate = "front", .reference = "reference", .reference_memory_bytes = (size_t)8 << 30
#define BACKEND_TIMED_BY_HOST .baseline = "baseline", .clock = "host", .place = "cpu", .timed = true

#define BACKEND_ROW(name) extern const struct judge_backend backend_##name;
BACKEND_FILES(BACKEND_ROW)
#undef BACKEND_ROW
#define BACKEND_ONE(name) +1
enum { BACKENDS = 0 BACKEND_FILES(BACKEND_ONE) };

const struct judge_backend *backend_find(const char *name); /* NULL if there is none */
/* From 0; -1: no row of the table. A row for tests has that of the row it stands for. */
int backend_index(const struct judge_backend *b);

#endif
