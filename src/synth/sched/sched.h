/* sched.h - a schedule is one row: a really different way to run a class of loop nests on a GPU. Rows are text with
 * holes; emit.c fills the holes from the nest and the result is parsed into the tree of ast.h.
 *
 * Holes of every template ($0 stands for a group's number):
 *   $k $params $T        kernel name, parameters, the output's element type
 *   $sizes               declarations of the sizes that the kernel uses, where they are not parameters
 *   $n0..$n4             extent of a group, as device text          $h0..$h4   the same as host text
 *   $decode0..$decode4   statements: the group's dimensions from its flat variable (row column 'flat')
 *   $store               computes and stores the output at the current dimensions
 *   $B $C $D             tuned numbers (column 'tune')               $B1 $BH   B minus one, B / 2
 * Reductions: "%{ ... %}" is repeated for each statistic; inside, with the accumulator's name filled in:
 *   $begin (declares it) $step (one element) $end (finishes it)     $shfl(s) $shflx(s) merge with lane + s, lane ^ s
 *   $put(i) $get(i) $merge(i) move to, from and with shared memory; $smem declares it, once
 *   $write               stores the row's result: by the lane that 'lane' names (reductions), or all elements (row
 * class)
 * Four at once: $aligned(x), may inputs (and out, if x is "out") be read as float4; $map4, $step4: four elements of a
 * map at i, of a row at j.
 * Contractions: $A(m, k) $Bm(k, n) elements (guards included), $acc what is added to; $result, the value that $store
 * reads.
 * Names: inputs as the program calls them, out; the variables of 'flat'; tid lane warp; a0 accumulators; v0..
 * values. */
#ifndef MC_SYNTH_SCHED_H
#define MC_SYNTH_SCHED_H

#include "base/rng.h"
#include "synth/ir/nest.h"

enum sched_flag {
    SCHED_ATOMIC = 1,   /* the output is initialised by the host, and added to */
    SCHED_COLLAPSED = 2 /* wants at most one dimension in each group but the batch */
};

struct tune {
    int choice[6]; /* ends with 0 */
};

struct sched {
    const char *name;
    unsigned classes; /* mask of enum nest_class */
    const char *flat[NEST_GROUPS];  /* variable that holds the group's flat index; NULL: $loops,
        a loop for each dimension */
    const char *lane, *stride;      /* of $write */
    struct tune tune[3];            /* $B $C $D */
    const char *kernel;             /* text of the kernels */
    const char *launch;             /* host text: "$k<<<($h0 + $B1) / $B, $B>>>($args);" */
    bool (*fits)(const struct nest *k);
    unsigned flags;
    const char *about;              /* one sentence, for reasoning and comments; may use $B */
};

/* Can the load be part of a float4 along the fast dimension (emit.c)? And all loads of an expression that walk it? */
bool nest_load_is_wide(const struct nest *k, const struct ax *load);
bool sched_is_wide(const struct nest *k, const struct ax *x);

const struct sched *const *sched_rows(int *n);
const struct sched *sched_find(enum nest_class c, const char *name);
/* Schedules that fit the (collapsed) nest, in table order; returns how many. */
int sched_for(const struct nest *k, const struct sched **ret, int max);
/* A choice for tune[t]: the first without a generator, and often with one; 0 where there is nothing to tune. */
int sched_tune(const struct sched *s, int t, struct rng *r);

#endif
