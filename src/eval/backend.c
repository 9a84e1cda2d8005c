/* backend.c - the rows of backend.h that need no code of their own, and the table. */
#include "eval/backend.h"

#include <string.h>

const struct backend backend_sim = {
    .name = "sim",
    .device = "sim",
    .candidate = "candidate",
    .reference = "reference",
    .target = "sim",
    .checks_itself = true,
    .reference_memory_bytes = (size_t)8 << 30,
    .max_elements = 1 << 22,
};

static const struct backend *const rows[BACKENDS] = {&backend_sim, &backend_cuda};

const struct backend *backend_at(int i)
{
    return rows[i];
}

int backend_index(const struct backend *b)
{
    for (int i = 0; i < BACKENDS; i++)
        if (rows[i] == b)
            return i;
    return -1;
}

const struct backend *backend_find(const char *name)
{
    for (int i = 0; i < BACKENDS; i++)
        if (name && !strcmp(rows[i]->name, name))
            return rows[i];
    return NULL;
}
