/* protocol.c - the table of protocols; see protocol.h. What each draws is in runner/reference.py. */
#include "eval/check/protocol.h"

#include <string.h>

/* The tolerance of our own rules; the sidecar's own one comes first. */
static struct tolerance protocol_strict(enum dtype out, enum dtype low, const struct noise *n,
                                        const struct own_tolerance *own)
{
    return own && dt_is_float(out) ? tolerance_own(own, n) : tolerance_strict(out, low, n);
}

/* The tolerance of KernelBench's published rules. */
static struct tolerance protocol_kernelbench(enum dtype out, enum dtype low, const struct noise *n,
                                             const struct own_tolerance *own)
{
    (void)out, (void)n, (void)own;
    return tolerance_kernelbench(low);
}

static const struct protocol protocols[] = {
    {.name = "strict", .binds_params = true, .sidecar = true, .stops_early = true, .tolerance = protocol_strict},
    {.name = "strict-torch", .binds_params = true, .sidecar = true, .stops_early = true, .operators = true,
     .tolerance = protocol_strict},
    {.name = "kernelbench", .operators = true, .published = true, .tolerance = protocol_kernelbench},
};

const struct protocol *protocol_find(const char *name)
{
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++)
        if (!strcmp(protocols[i].name, name))
            return &protocols[i];
    return NULL;
}
