/* positive.c - the language model's loss on what did well: -log pi of the tokens of sequences with an advantage above
 * 0, as VAPO adds it (Yue et al. 2025, arXiv:2504.05118, positive-example LM loss, weight 0.1). It keeps rare right
 * answers from being learned from only once. */
#include "objective/loss_terms.h"

static struct loss_value positive_of(const struct loss_token *t)
{
    return t->advantage > 0 ? (struct loss_value){-t->logp, -1} : (struct loss_value){0, 0};
}

const struct loss_term term_positive = {"positive", positive_of};
