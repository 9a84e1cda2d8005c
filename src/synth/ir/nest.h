/* nest.h - the loop IR: what one kernel computes, without saying how.
 *
 *   for each index of the output's dimensions:
 *       stat[k] = combine over the reduced dimensions of stat[k].elem, then stat[k].fin      (k = 0, 1, ..)
 *       store[index] = out
 *
 * Dimensions come in groups whose meaning the class fixes (enum nest_class). Expressions are those of ast.h over the
 * names of dimensions, of finished statistics ("s0", "s1"), and loads "L0(n, c, h * 2 - 1)"; a guard is a conditional.
 * Predicates and affine indices are plain arithmetic, so one evaluator (nest_eval) and one printer serve all
 * classes. */
#ifndef MC_SYNTH_NEST_H
#define MC_SYNTH_NEST_H

#include "synth/ir/ast.h"
#include "synth/ir/tdesc.h"

enum nest_class {
    NEST_MAP,      /* group 0: output */
    NEST_REDUCE,   /* 0: output, 1: reduced */
    NEST_ROW,      /* 0: rows, 1: reduced, and output once more: softmax, norms */
    NEST_WINDOW,   /* 0: output, 1: the window, small */
    NEST_CONTRACT, /* 0: batch, 1: m, 2: n, 3: k; stat[0] sums a * b; a holds no n, b no m */
    NEST_SCAN,     /* 0: rows, 1: axis; stat[0] runs along it; flags */
    NEST_SCATTER,  /* 0: source elements; store's index holds loads; combined by stat[0].c into an initialised output */
    NEST_ATTEND,   /* 0: batch, 1: query, 2: key (reduced), 3: depth (reduced), 4: output column; a: query, b: key,
                      c: value, mask: score from "s" (kept in elem); softmax over keys */
    N_NEST_CLASSES
};
extern const char *const nest_class_names[N_NEST_CLASSES];

enum combine { C_SUM, C_PROD, C_MAX, C_MIN, C_ARGMAX, C_ARGMIN, C_LOGADDEXP };

#define NEST_DIMS 14
#define NEST_GROUPS 5
#define NEST_STATS 4
#define NEST_OPERANDS 10

struct dim {
    const char *name;
    int n;
    int8_t group;
};

struct stat {
    enum combine c;
    struct ax *elem; /* over all dimensions and earlier statistics */
    struct ax *fin;  /* over "acc"; NULL: acc itself */
};

struct operand {
    struct tdesc t;
    int value; /* of the graph; -1 when a nest stands alone */
};

enum { SCAN_EXCLUSIVE = 1, SCAN_REVERSE = 2 };

struct nest {
    struct arena *arena; /* owns every node */
    enum nest_class class;
    unsigned flags; /* of scans */
    int8_t init;    /* of scatters: the operand that the output starts as; -1: zeros */
    struct dim dim[NEST_DIMS];
    int n_dims;
    struct operand in[NEST_OPERANDS];
    int n_in;
    struct stat stat[NEST_STATS];
    int n_stats;
    struct ax *a, *b, *c;
    struct ax *out;   /* the stored value */
    struct ax *store; /* a load node: where it goes */
    struct tdesc out_t;
    const char *about; /* what it computes, for readers: "conv2d" */
};

/* ---- building: what an operator's lower() calls ---- */
void nest_init(struct nest *k, struct arena *a, enum nest_class c, const struct tdesc *in, int n_in,
    const struct tdesc *out);
void nest_dim(struct nest *k, int group, int n, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
struct ax *nest_expr(struct nest *k, const char *fmt, ...) __attribute__((format(printf, 2,
    3))); /* binds loads' extents */
void nest_stat(struct nest *k, enum combine c, struct ax *elem, const char *fin); /* fin may be NULL */
/* The store: a comma-separated list of dimension names in the output's order; NULL: all output dimensions in order. */
void nest_store(struct nest *k, const char *order);
/* Operand i read at the output's dimensions, broadcast as PyTorch does; names: n names of dimensions, outermost
 * first. */
struct ax *nest_broadcast(struct nest *k, int i, const char *const names[], int n);
/* expr with each identifier replaced; nodes of 'with' are shared, not copied. */
struct ax *ax_subst(struct arena *a, const struct ax *x, const char *const id[], struct ax *const with[], int n);

/* ---- questions and transformations ---- */
struct ax *ax_simplify(struct arena *a, struct ax *x, const struct nest *k); /* k: dimensions' ranges, may be NULL */
bool ax_equal(const struct ax *x, const struct ax *y);
void nest_simplify(struct nest *k);
/* Merges neighbouring dimensions that every load and the store walk together, and drops dimensions of extent 1. */
void nest_collapse(struct nest *k);
int nest_group(const struct nest *k, int group, int ret[NEST_DIMS]); /* indices of its dimensions; returns how many */
int64_t nest_extent(const struct nest *k, int group);              /* their product, 1 if there are none */
int nest_find_dim(const struct nest *k, const char *name); /* -1 if there is none */
/* Replaces the consumer's loads of operand i by what the producer computes (a NEST_MAP whose store is the identity);
 * its operands are added to k's. -1 if they do not fit into the tables. */
int nest_inline(struct nest *k, int i, const struct nest *producer);
/* Appends a NEST_MAP that reads k's output (its operand i) at exactly its own place. -1: it does not fit. */
int nest_append(struct nest *k, const struct nest *map, int i);

/* Operands with the same value become one; those that nothing loads go away. */
void nest_unify(struct nest *k);
bool nest_is_pure_map(const struct nest *k); /* a map whose store is the identity */

/* What the nest computes, in fp64, straight from the definition above: the second oracle of tests. in: dense arrays. */
void nest_eval(const struct nest *k, const double *const in[], double *out);
double combine_identity(enum combine c);

#endif
