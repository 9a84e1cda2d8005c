/* loss_terms.h - further terms of the policy's loss, each a file of src/objective/terms: a function of one token.
 *
 * To add one: write terms/NAME.c, which ends in 'const struct loss_term term_NAME = {"NAME", function}'. The Makefile
 * lists the files; 'rl --loss-terms NAME=WEIGHT' adds its weight times the term to the loss, and tests/objective takes
 * its derivative by differences. Pure: no clock, no state. */
#ifndef MC_OBJECTIVE_LOSS_TERMS_H
#define MC_OBJECTIVE_LOSS_TERMS_H

#include "base/err.h"

#define LOSS_TERMS_MAX 16

struct loss_token {
    double logp;      /* of the token, by the policy that learns; <= 0 */
    double behav;     /* by the one that drew it */
    double advantage; /* of its sequence */
};

struct loss_value {
    double loss, dlogp; /* the term, and its derivative by logp */
};

struct loss_term {
    const char *name;
    struct loss_value (*of)(const struct loss_token *t);
};

/* All terms that there are, by name; NULL ends them. */
extern const struct loss_term *const loss_terms_known[];

/* Those of a run, with their weights; n 0: none. */
struct loss_terms {
    const struct loss_term *term[LOSS_TERMS_MAX];
    double weight[LOSS_TERMS_MAX];
    int n;
};

/* "positive=0.1,other=0.01"; NULL or "": none. ERR_INPUT names the known ones. */
int loss_terms_parse(const char *text, struct loss_terms *ret, struct err *e);

/* The weighted sum; zeros where there is none. */
struct loss_value loss_terms_sum(const struct loss_terms *s, const struct loss_token *t);

#endif
