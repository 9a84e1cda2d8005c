/* primeecho.c - see primeecho.h. */
#include "objective/primeecho.h"

#include <math.h>

int primeecho_reward(const struct primeecho *p, const double *score, int turns, int passed_turn, double *ret,
                     struct err *e)
{
    double best, bonus;

    if (turns < 1)
        return err_set(e, ERR_BUG, "a trajectory without turns has no reward");
    if (passed_turn < 0 || passed_turn > turns)
        return err_set(e, ERR_BUG, "pass in turn %d of a trajectory of %d turns", passed_turn, turns);
    for (int k = 0; k < turns; k++)
        if (!isfinite(score[k]))
            return err_set(e, ERR_BUG, "score of turn %d is not finite", k + 1);
    best = score[0];
    for (int k = 1; k < turns; k++)
        best = fmax(best, score[k]);
    bonus = passed_turn == 1 ? p->bonus1 : passed_turn == 2 ? p->bonus2 : 0;
    *ret = p->alpha * score[0] + (1 - p->alpha) * best + bonus;
    return 0;
}
