/* kl.h - estimators of KL(pi || ref) from one sampled token (J. Schulman, "Approximating KL divergence").
 * With d = log ref - log pi:  k1 = -d;  k2 = d^2 / 2;  k3 = e^d - d - 1, clamped to [-10, 10] (verl's low_var).
 * The gradient of k1 used as a loss is noise with mean zero: kl_kind_of refuses it there. */
#ifndef MC_KL_H
#define MC_KL_H

#include "base/err.h"

enum kl_kind { KL_NONE, KL_K1, KL_K2, KL_K3 };

int kl_kind_of(const char *name, enum kl_kind *ret, struct err *e); /* "none" "k2" "k3"; "k1" is refused as a loss */

/* value and dvalue/dlogp of one token. NaN log-probs are refused; d is clamped to [-20, 20]. */
int kl_token(enum kl_kind kind, double logp, double ref, double *value, double *dlogp, struct err *e);

#endif
