/* dag.h - a graph of operators: values are inputs, parameters, or results of calls, in an order in which they can be
 * computed. The last call's result is the graph's. Plain data: copying a struct copies the graph. */
#ifndef MC_SYNTH_DAG_H
#define MC_SYNTH_DAG_H

#include "synth/op.h"

#define DAG_NODES 12
#define DAG_VALUES (DAG_NODES * OP_INPUTS)
#define DAG_INPUTS 8

enum value_kind { VALUE_INPUT, VALUE_PARAM, VALUE_NODE };

struct dag_value {
    struct tdesc t;
    uint8_t kind;
    int8_t node;          /* NODE: which; PARAM: whose module */
    int8_t slot;          /* PARAM: which input of it */
    int8_t uses;
    struct op_interval range;
};

struct dag_node {
    struct op_call c;
    int16_t in[OP_INPUTS]; /* values */
    int16_t out;
    uint8_t spelling;
};

struct dag {
    struct dag_value value[DAG_VALUES];
    struct dag_node node[DAG_NODES];
    int n_values, n_nodes;
};

int dag_add_input(struct dag *g, const struct tdesc *t);
/* Adds the call; in[i] < 0: a new input, or a parameter where the row says so. Returns the node, -1 if tables are
 * full. */
int dag_add(struct dag *g, const struct op_call *c, const int in[], uint8_t spelling);
int dag_result(const struct dag *g); /* value */
int dag_bound(const struct dag *g, int value); /* how many values an index may take; 0: it is no index */
/* Where an input must lie because the operator that reads it first is defined nowhere else; {0, 0}: anywhere. */
struct op_interval dag_domain(const struct dag *g, int value);
void dag_pop(struct dag *g);   /* takes back the last dag_add */
void dag_prune(struct dag *g); /* drops nodes and values that the result does not need */
/* The result in fp64, by the rows' references. in: arrays for inputs and parameters, in order of values. Caller
 * frees. */
double *dag_eval(const struct dag *g, const double *const in[]);
/* The same, with what every value is on the way: v[i] of value i. */
void dag_eval_all(const struct dag *g, const double *const in[], double *v[]);
void dag_values_free(const struct dag *g, double *v[]);
/* The result where one node is computed by a loop nest over its operands, as op_lower makes it. NULL: it hands on its
 * first operand, which must have as many elements. v: dag_eval_all's; only what depends on the node is computed again.
 * Caller frees. */
struct nest;
double *dag_eval_with(const struct dag *g, double *const v[], int node, const struct nest *nest);
uint64_t dag_hash(const struct dag *g,
    bool with_shapes); /* Weisfeiler-Lehman; equal for graphs that differ in names only */

#endif
