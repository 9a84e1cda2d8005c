/* cost.c - see cost.h. */
#include "synth/cost.h"

#include <math.h>
#include <string.h>

/* How a schedule divides the work of one output element (contractions, reductions, windows) or of one element (maps):
 * lanes share it; each thread takes 'serial' of them in turn; a factor is loaded once for 'reuse' products. 'B' 'C' 'D'
 * stand for the tuned numbers, 'P' for B * C, '1' '4' and so on for themselves, 'W' for a warp. */
static const struct way {
    unsigned classes;
    const char *name;
    char lanes, serial, reuse_a, reuse_b;
} ways[] = {
    {1u << NEST_CONTRACT, "coarse", '1', 'C', 'C', '1'},  {1u << NEST_CONTRACT, "tile", '1', '1', 'B', 'B'},
    {1u << NEST_CONTRACT, "double", '1', '1', 'B', 'B'},  {1u << NEST_CONTRACT, "register", '1', 'Q', 'P', 'P'},
    {1u << NEST_CONTRACT, "warp", 'W', '1', '1', '1'},    {1u << NEST_CONTRACT, "shuffle", '1', '1', 'W', '1'},
    {1u << NEST_CONTRACT, "columns", '1', '4', '4', '1'},
    {1u << NEST_CONTRACT, "vector", '1', '1', '1', '1'}, {1u << NEST_MAP, "vector", '1', '4', '1', '1'},
    {~0u, "vector", 'W', '1', '1', '1'},                  {1u << NEST_CONTRACT, "block", 'B', '1', '1', '1'},
    {~0u, "coarse", '1', 'C', '1', '1'},
    {~0u, "warp", 'W', '1', '1', '1'},                    {~0u, "rows", 'W', '1', '1', '1'},
    {~0u, "online", 'W', '1', '1', '1'},                  {~0u, "subwarp", 'C', '1', '1', '1'},
    {~0u, "block", 'B', '1', '1', '1'},                   {~0u, "block_shuffle", 'B', '1', '1', '1'},
    {~0u, "persistent", 'B', '1', '1', '1'},              {~0u, "column", 'C', '1', '1', '1'},
    {~0u, "two_stage", 'P', '1', '1', '1'},               {~0u, "atomic", 'P', '1', '1', '1'},
    {~0u, "hillis", 'B', '1', '1', '1'},                  {~0u, "", '1', '1', '1', '1'}};

/* How the kernel's schedule uses memory; the last row where none fits. */
static const struct way *cost_way_of(const struct kernel *k)
{
    const struct way *w = ways;

    while (*w->name && !(w->classes >> k->nest.class & 1 && !strcmp(w->name, k->s->name)))
        w++;
    return w;
}

/* What a letter of the table stands for: a tile's size, a product of such, or a constant; 1 for others. */
static int64_t cost_number(const struct kernel *k, char code)
{
    int64_t b = k->tuned[0], c = k->tuned[1];
    const struct {
        char code;
        int64_t v;
    } all[] = {{'B', b}, {'C', c}, {'P', b * c}, {'Q', c * c}, {'W', 32}, {'4', 4}};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].code == code && all[i].v > 0)
            return all[i].v;
    return 1;
}

/* Bytes of all loads of x for one evaluation. */
static int64_t cost_load_bytes(const struct nest *k, const struct ax *x)
{
    static const int sizes[N_DTYPES] = {[DT_F32] = 4, [DT_F16] = 2, [DT_BF16] = 2, [DT_I64] = 8};
    int64_t n = 0;

    if (!x)
        return 0;
    if (x->kind == AX_LOAD)
        n += sizes[k->in[x->i].t.dtype];
    for (int i = 0; i < x->n; i++)
        n += cost_load_bytes(k, x->kid[i]);
    return n;
}

/* Elements that are combined into one output, or 1. */
static int64_t cost_depth_of(const struct nest *k)
{
    switch (k->class) {
    case NEST_REDUCE:
    case NEST_ROW:
    case NEST_WINDOW:
    case NEST_SCAN: return nest_extent(k, 1);
    case NEST_CONTRACT: return nest_extent(k, 3);
    case NEST_ATTEND: return nest_extent(k, 2) * nest_extent(k, 3);
    case NEST_MAP:
    case NEST_SCATTER:
    case N_NEST_CLASSES: break;
    }
    return 1;
}

/* How many outputs the nest computes. */
static int64_t cost_outputs_of(const struct nest *k)
{
    switch (k->class) {
    case NEST_CONTRACT: return nest_extent(k, 0) * nest_extent(k, 1) * nest_extent(k, 2);
    case NEST_ATTEND: return nest_extent(k, 0) * nest_extent(k, 1);
    default: return nest_extent(k, 0);
    }
}

/* Bytes that a kernel moves from and to device memory under a schedule's way of reuse. */
static int64_t cost_bytes_of(const struct kernel *k, const struct way *w)
{
    const struct nest *n = &k->nest;
    int64_t work = cost_outputs_of(n) * cost_depth_of(n), bytes = tdesc_numel(&n->out_t) * 4;

    bytes += tdesc_numel(&n->out_t) * cost_load_bytes(n, n->out);
    if (n->class == NEST_CONTRACT)
        return bytes + work * cost_load_bytes(n, n->a) / cost_number(k, w->reuse_a) +
               work * cost_load_bytes(n, n->b) / cost_number(k, w->reuse_b);
    if (n->class == NEST_ATTEND)
        return bytes + work * (cost_load_bytes(n, n->a) + cost_load_bytes(n, n->b) + cost_load_bytes(n, n->c));
    for (int i = 0; i < n->n_stats; i++)
        bytes += work * cost_load_bytes(n, n->stat[i].elem);
    return bytes;
}

/* A kernel's estimated cost: launches, bytes, operations and the time in us that they take. */
static struct cost cost_kernel(const struct kernel *k)
{
    const struct way *w = cost_way_of(k);
    const struct nest *n = &k->nest;
    int64_t lanes = cost_number(k, w->lanes), passes = n->class == NEST_ROW ? n->n_stats + 1 : n->n_stats
        ? n->n_stats : 1;
    bool fixed = !strcmp(k->s->name, "stride");
    int64_t threads = cost_outputs_of(n) * lanes / cost_number(k, w->serial);
    struct cost c = {.kernels = !strcmp(k->s->name, "two_stage") ? 2 : 1, .bytes = cost_bytes_of(k, w)};
    double waves;

    if (fixed && threads > (int64_t)k->tuned[0] * cost_number(k, 'C'))
        threads = (int64_t)k->tuned[0] * cost_number(k, 'C');
    c.steps = passes * ((cost_depth_of(n) + lanes - 1) / lanes) * cost_number(k, w->serial);
    if (fixed && threads > 0)
        c.steps *= (cost_outputs_of(n) + threads - 1) / threads;
    waves = fmax(1, (double)threads / COST_RESIDENT);
    c.us = c.kernels * COST_LAUNCH_US +
           fmax((double)c.bytes / COST_BYTES_US, (double)c.steps * waves * COST_STEP_US);
    return c;
}

/* The sum of all kernels' costs. */
struct cost cost_of(const struct kernels *k)
{
    struct cost sum = {0};

    for (int i = 0; i < k->n; i++) {
        struct cost c = cost_kernel(&k->k[i]);
        sum.kernels += c.kernels, sum.bytes += c.bytes, sum.us += c.us;
        sum.steps = c.steps > sum.steps ? c.steps : sum.steps;
    }
    return sum;
}
