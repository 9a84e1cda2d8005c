/* fuse.h - which kernels a graph becomes. Elementwise nodes join the kernel that makes their operand (epilogue) or
 * the one
 * that reads their result (prologue); what is left is a list of loop nests in the order in which they must run. */
#ifndef MC_SYNTH_FUSE_H
#define MC_SYNTH_FUSE_H

#include "synth/dag.h"
#include "synth/sched/sched.h"

enum fusion { FUSE_NONE, FUSE_EPILOGUE, FUSE_ALL, N_FUSIONS };
extern const char *const fusion_names[N_FUSIONS];

struct kernel {
    struct nest nest; /* collapsed; operand's value: of the graph */
    int out;          /* value */
    const struct sched *s;
    int tuned[3];
};

struct kernels {
    struct kernel k[DAG_NODES];
    int n;
};

void fuse(const struct dag *g, enum fusion level, struct arena *a, struct kernels *ret);
/* Chooses a schedule for each kernel: the first that fits, or at random; tuned numbers likewise. -1 if one has none. */
int fuse_schedule(struct kernels *k, struct rng *r);
/* Each schedule's first numbers. */
void fuse_untuned(struct kernels *k);

#endif
