/* surface.h - tasks as people write them: modules with constructors, docstrings and sizes by name, of one layer or
 * a chain, and for each a program of plain generic kernels that reads every size when it runs. */
#ifndef MC_SYNTH_SURFACE_SURFACE_H
#define MC_SYNTH_SURFACE_SURFACE_H

#include <stdbool.h>
#include <stdint.h>

#define SURFACE_OPS 12

/* A task and its program, both Python files; ops and families name what the task is made of. */
struct surface {
    char *task, *program;
    const char *op[SURFACE_OPS], *family[SURFACE_OPS];
    int n_ops, n_kernels;
};

struct surface_limits {
    double chains;    /* share of tasks that are chains of a convolution or product and what follows */
    const char *only; /* the name of a kind that stands alone; NULL: any */
};

/* The share of chains in a corpus, of those that are kept: chains are too long more often than single layers. */
#define SURFACE_CHAINS 0.5
/* Is the task of this index a chain, where so many are? The same for all tries of an index. Pure. */
bool surface_is_chain(long index, double share);
/* The task of this seed and index; the same bytes for the same arguments. */
void surface_draw(uint64_t seed, uint64_t index, const struct surface_limits *l, struct surface *ret);
void surface_free(struct surface *s);
/* A list of operators has a hash, as a graph has. */
uint64_t surface_hash(const struct surface *s);
/* Is it drawn by itself? Others, residuals say, stand in chains alone. */
bool surface_stands_alone(const char *kind);
/* The name of the i-th kind; NULL behind the last. */
const char *surface_kind(int i);

#endif
