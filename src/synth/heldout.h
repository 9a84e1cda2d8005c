/* heldout.h - what the training side never shows: pure rules, the same for every corpus and seed.
 *
 * Operators are in three classes. Training has programs and questions (knowledge.h) of a taught one, questions alone of
 * a known one, and nothing of an unseen one. Prompts of reinforcement learning ask for taught and known ones.
 *
 *   same        a graph (operators and how they are joined) that training never has; one in eight, by its hash
 *   attributes  a graph of the training side with a size or a constant that no training task has
 *   style       an operator written as a method of the tensor, docstrings, names used twice
 *   learned     a known operator, beside taught ones: of a graph that no prompt has (learned_graphs), or of a prompt's
 *               graph in other sizes (learned_sizes)
 *   unseen      an unseen operator, beside taught ones */
#ifndef MC_SYNTH_HELDOUT_H
#define MC_SYNTH_HELDOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "synth/dag.h"

enum heldout { HELD_SAME, HELD_ATTRIBUTES, HELD_STYLE, HELD_LEARNED, HELD_UNSEEN, N_HELD };
extern const char *const heldout_names[N_HELD];

enum op_class { OP_TAUGHT, OP_KNOWN, OP_UNSEEN, N_OP_CLASSES };
extern const char *const op_class_names[N_OP_CLASSES];

bool heldout_graph(uint64_t hash);                      /* of dag_hash(g, false) */
enum op_class heldout_class(const struct opdef *op);
enum op_class heldout_name_class(const char *name); /* of a name of the registry; any other name is taught */
bool heldout_size(int n);
bool heldout_constant(double x);
bool heldout_spelling(const struct opdef *op, int spelling);

bool heldout_has_operator(const struct dag *g, enum op_class c);
bool heldout_has_attribute(const struct dag *g);        /* a size of an input or parameter, or a constant */
/* Spells each node in the training side's way, or in the other where it has one; a module stays a module. False if the
 * first is not possible, or the second for no node. */
bool heldout_spell(struct dag *g, bool held, struct rng *r);

#endif
