/* judge_backend.c - the rows of judge_backend.h that need no code of their own, and the table. */
#include "eval/process/judge_backend.h"

#include <stdlib.h>
#include <string.h>

#define SIM_ROW .name = "sim", .target = "sim", .max_elements = 1 << 22, BACKEND_ON_CPU

const struct judge_backend backend_sim = {SIM_ROW};

/* For tests of timing without a GPU ($MUSACODER_TEST_TIMED). */
static const struct judge_backend backend_sim_timed = {SIM_ROW, BACKEND_TIMED_BY_HOST};

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
