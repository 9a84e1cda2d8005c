/* ops.c - picks the operators for the machine we run on. */
#include "nn/ops/ops.h"

#include <stdlib.h>
#include <string.h>

extern const struct ops ops_base;
#ifdef __x86_64__
extern const struct ops ops_v3, ops_v4;

static bool has_v3(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
static bool has_v4(void)
{
    return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}
#endif

const struct ops *cpu_ops_named(const char *name)
{
#ifdef __x86_64__
    if (!strcmp(name, "v4"))
        return has_v4() ? &ops_v4 : NULL;
    if (!strcmp(name, "v3"))
        return has_v3() ? &ops_v3 : NULL;
#endif
    return !strcmp(name, "base") ? &ops_base : NULL;
}

const struct ops *cpu_ops(void)
{
    static const char *const best_first[] = {"v4", "v3", "base"};
    const char *want = getenv("MUSACODER_ISA");
    const struct ops *o = want ? cpu_ops_named(want) : NULL;

    for (size_t i = 0; !o && i < sizeof best_first / sizeof best_first[0]; i++)
        o = cpu_ops_named(best_first[i]);
    return o;
}
