/* dag_draw.h - draws graphs constructively: every step is valid when it is made; nothing is searched, nothing undone.
 *
 * A graph grows from one input: each step picks a live value (mostly the newest), an operator that takes its rank and
 * dtype, and lets the row draw the rest; further operands are live values of the wanted shape (diamonds, residuals),
 * parameters, or new inputs. Intervals of values are carried along; where a row's domain is not met, a clamp is put
 * in front. */
#ifndef MC_SYNTH_DAG_DRAW_H
#define MC_SYNTH_DAG_DRAW_H

#include <jansson.h>

#include "synth/dag.h"

struct dag_limits {
    struct op_limits l;
    int min_ops, max_ops;   /* 1 to 10; a guard counts */
    int anchors;            /* at most so many contractions, scans, windows, attentions: what fusion cannot join */
    const uint8_t *allowed; /* one byte for each row of op_rows(), 0: never; NULL: all */
};

/* The table that rows are drawn from; build once, read by any number of threads. */
struct dag_table;
struct dag_table *dag_table_new(const uint8_t *allowed);
/* The same, with weights of families: {"convolution":1.8,..}; 1 for those that are not named. weights may be NULL. */
struct dag_table *dag_table_weighted(const uint8_t *allowed, const json_t *weights);
void dag_table_free(struct dag_table *t);

/* Always succeeds: at least min_ops nodes unless the registry offers nothing more for the shapes drawn. */
void dag_draw(const struct dag_table *t, struct rng *r, const struct dag_limits *l, struct dag *ret);

#endif
