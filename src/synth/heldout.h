/* heldout.h - what the training side never shows, in four ways: pure rules, the same for every corpus and seed.
 *
 *   same        a graph (operators and how they are joined) that training never has; one in eight, by its hash
 *   attributes  a graph of the training side with a size or a constant that no training task has
 *   operators   an operator that no training task has, beside known ones of its family
 *   style       an operator written as a method of the tensor, docstrings, names used twice */
#ifndef MC_SYNTH_HELDOUT_H
#define MC_SYNTH_HELDOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "synth/dag.h"

enum heldout { HELD_SAME, HELD_ATTRIBUTES, HELD_OPERATORS, HELD_STYLE, N_HELD };
extern const char *const heldout_names[N_HELD];

bool heldout_graph(uint64_t hash);                      /* of dag_hash(g, false) */
bool heldout_operator(const struct opdef *op);
bool heldout_size(int n);
bool heldout_constant(double x);
bool heldout_spelling(const struct opdef *op, int spelling);

bool heldout_has_operator(const struct dag *g);
bool heldout_has_attribute(const struct dag *g);        /* a size of an input or parameter, or a constant */
/* Spells each node in the training side's way, or in the other where it has one; a module stays a module. False if the
 * first is not possible, or the second for no node. */
bool heldout_spell(struct dag *g, bool held, struct rng *r);

#endif
