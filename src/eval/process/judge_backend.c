/* judge_backend.c - the rows of judge_backend.h that need no code of their own, and the table. */
#include "eval/process/judge_backend.h"

#include <stdlib.h>
#include <string.h>


const struct judge_backend backend_sim = {
    .name = "sim",
    .device = "front",
    .candidate = "front",
    .reference = "reference",
    .target = "sim",
    .reference_memory_bytes = (size_t)8 << 30,
    .max_elements = 1 << 22,
};

/* For tests of timing without a GPU ($MUSACODER_TEST_TIMED): the clocks are the machine's, the figures mean nothing. */
static const struct judge_backend backend_sim_timed = {
    .name = "sim",
    .device = "front",
    .candidate = "front",
    .reference = "reference",
    .baseline = "baseline",
    .clock = "host",
    .place = "cpu",
    .target = "sim",
    .timed = true,
    .reference_memory_bytes = (size_t)8 << 30,
    .max_elements = 1 << 22,
};

static const struct judge_backend *const rows[BACKENDS] = {&backend_sim, &backend_cuda, &backend_musa,
                                                           &backend_cuda_test, &backend_sim_timed};

int backend_index(const struct judge_backend *b)
{
    for (int i = 0; i < BACKENDS; i++)
        if (rows[i] == b)
            return i;
    return -1;
}

const struct judge_backend *backend_find(const char *name)
{
    if (name && !strcmp(name, "cuda") && getenv("MUSACODER_TEST_REFERENCE"))
        return &backend_cuda_test;
    if (name && !strcmp(name, "sim") && getenv("MUSACODER_TEST_TIMED"))
        return &backend_sim_timed;
    for (int i = 0; i < BACKENDS && rows[i] != &backend_cuda_test; i++)
        if (name && !strcmp(rows[i]->name, name))
            return rows[i];
    return NULL;
}
