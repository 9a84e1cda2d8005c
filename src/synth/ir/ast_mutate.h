/* ast_mutate.h - bug injection on the tree: edits that a person could have slipped into. Each edit finds its place
 * by what
 * a node is and by its role, not by how a template is spelled. Whether a mutant is wrong is for the judge to say. */
#ifndef MC_SYNTH_AST_MUTATE_H
#define MC_SYNTH_AST_MUTATE_H

#include "base/rng.h"
#include "synth/ir/ast.h"

int ast_mutations(void);
const char *ast_mutation_name(int kind);
const char *ast_mutation_reason(int kind); /* what is wrong then, for reviews: "a barrier is missing" */

/* Applies one edit of this kind at a random place that fits. false: there is none, and the tree is as it was. */
bool ast_mutate(struct arena *a, struct rng *r, int kind, struct afun *f);
/* A random kind that applies; -1 if none does. */
int ast_mutate_any(struct arena *a, struct rng *r, struct afun *f);

#endif
