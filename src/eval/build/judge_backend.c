/* judge_backend.c - the table of judge_backend.h, of the files that the Makefile lists. */
#include "eval/build/judge_backend.h"

#include <stdlib.h>
#include <string.h>

#define BACKEND_ROW(name) &backend_##name,
static const struct judge_backend *const rows[BACKENDS] = {BACKEND_FILES(BACKEND_ROW)};
#undef BACKEND_ROW

int backend_index(const struct judge_backend *b)
{
    for (int i = 0; i < BACKENDS; i++)
        if (rows[i] == b || rows[i]->for_tests == b)
            return i;
    return -1;
}

const struct judge_backend *backend_find(const char *name)
{
    for (int i = 0; i < BACKENDS; i++)
        if (name && !strcmp(rows[i]->name, name))
            return rows[i]->test_variable && getenv(rows[i]->test_variable) ? rows[i]->for_tests : rows[i];
    return NULL;
}

void device_facts_free(struct device_facts *f)
{
    free(f->name);
    free(f->uuid);
    free(f->arch);
    *f = (struct device_facts){0};
}
