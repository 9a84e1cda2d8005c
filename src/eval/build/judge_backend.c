/* judge_backend.c - the table of judge_backend.h. */
#include "eval/build/judge_backend.h"

#include <stdlib.h>
#include <string.h>

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

void device_facts_free(struct device_facts *f)
{
    free(f->name);
    free(f->uuid);
    free(f->arch);
    *f = (struct device_facts){0};
}
