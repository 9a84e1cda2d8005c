/* policy.c - see policy.h. Two passes: the first measures and decides the mask, because the weights of a sequence may
 * depend on how many are left; with the default aggregation they do not, and one pass does both. */
#include "train/policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "objective/mirrorpop.h"

struct policy_pass {
    struct model *m, *ref;
    struct pack *pack;
    const struct policy_seq *seqs;
    const struct policy_options *o;
    const double *weight; /* per sequence; NULL while measuring */
    bool *keep;
    struct policy_stats *st;
    float *ref_logp;      /* (max_tokens) */
};

/* Measures how far sequence k's behaviour policy is off, and decides whether it is kept. */
static int policy_measure_seq(struct policy_pass *p, int k, struct err *e)
{
    const struct policy_seq *q = &p->seqs[p->pack->seq[k]];
    struct offpolicy off;

    if (offpolicy_measure(p->pack->logp + p->pack->start[k], q->behav, (size_t)q->n, &off, e) < 0)
        return err_prefix(e, "sequence %d", p->pack->seq[k]);
    p->keep[p->pack->seq[k]] = !p->o->mirrorpop || mirrorpop_keep(&off, p->o->delta);
    p->st->signed_mean += fabs(off.signed_mean);
    p->st->mirror += off.mirror;
    p->st->masked_share += !p->keep[p->pack->seq[k]];
    p->st->n_seqs++;
    if (q->adv != 0) {
        p->st->masked[q->adv > 0] += !p->keep[p->pack->seq[k]];
        p->st->of_sign[q->adv > 0]++;
    }
    for (int t = 0; t < q->n; t++)
        p->st->entropy += p->pack->entropy[p->pack->start[k] + t];
    p->st->n_tokens += q->n;
    return 0;
}

/* Coefficients of one token: dL/dlogp and dL/dentropy. */
static int policy_token_terms(struct policy_pass *p, const struct policy_seq *q, int t, int at, double w, struct err *e)
{
    const struct policy_options *o = p->o;
    struct ppo_token tok;
    struct loss_value more = loss_terms_sum(&o->terms, &(struct loss_token){p->pack->logp[at], q->behav[t], q->adv});
    double kl = 0, dkl = 0;

    if (ppo_token_loss(&o->clip, p->pack->logp[at], q->behav[t], q->adv, &tok, e) < 0)
        return -1;
    if (p->ref && kl_token(o->kl, p->pack->logp[at], p->ref_logp[at], &kl, &dkl, e) < 0)
        return -1;
    p->st->clip_share += tok.clipped;
    p->st->loss += w * (tok.loss + o->kl_coef * kl - o->entropy_coef * p->pack->entropy[at] + more.loss);
    p->st->kl += w * kl;
    p->pack->dlogp[at] = (float)(w * (tok.dlogp + o->kl_coef * dkl + more.dlogp));
    p->pack->dentropy[at] = (float)(-w * o->entropy_coef);
    return 0;
}

/* Fills the gradients of sequence k's tokens. */
static int policy_weigh_seq(struct policy_pass *p, int k, struct err *e)
{
    int number = p->pack->seq[k];
    const struct policy_seq *q = &p->seqs[number];
    double w = p->weight[number];

    for (int t = 0; t < q->n && w > 0; t++)
        if (policy_token_terms(p, q, t, p->pack->start[k] + t, w, e) < 0)
            return err_prefix(e, "sequence %d, token %d", number, t);
    return 0;
}

/* Runs the pack forward. measure: to find which sequences are kept; else to learn. */
static int policy_run_pack(struct policy_pass *p, bool measure, struct err *e)
{
    struct train_batch b = pack_batch(p->pack, p->o->temperature);

    if (p->pack->n_seqs == 0)
        return 0;
    if (model_forward(p->m, &b, p->pack->logp, p->pack->entropy, e) < 0 ||
        (p->ref && p->weight && model_forward(p->ref, &b, p->ref_logp, NULL, e) < 0))
        return -1;
    for (int k = 0; k < p->pack->n_seqs; k++)
        if ((measure && policy_measure_seq(p, k, e) < 0))
            return -1;
    return 0;
}

/* Weighs the pack's sequences and runs backward. */
static int policy_finish_pack(struct policy_pass *p, struct err *e)
{
    for (int k = 0; k < p->pack->n_seqs; k++)
        if (policy_weigh_seq(p, k, e) < 0)
            return -1;
    return model_backward(p->m, p->pack->dlogp, p->o->entropy_coef != 0 ? p->pack->dentropy : NULL, e);
}

/* False for a sequence that cannot change the gradients. A further term may be nonzero where the advantage is 0. */
static bool policy_looked_at(const struct policy_seq *q, const struct policy_options *o)
{
    return q->adv != 0 || o->terms.n || o->entropy_coef != 0 || (o->kl != KL_NONE && o->kl_coef != 0);
}

/* Forward over all sequences; with 'learn' also backward, the mask applied pack by pack to the given weights. */
static int policy_walk(struct policy_pass *p, size_t n, bool measure, double *learn_weight, struct err *e)
{
    p->weight = learn_weight;
    pack_clear(p->pack);
    for (size_t i = 0; i <= n; i++) {
        if (i < n && !policy_looked_at(&p->seqs[i], p->o))
            continue;
        struct pack_seq s = {0};

        if (i < n)
            s = (struct pack_seq){p->seqs[i].ids, p->seqs[i].n_prompt + p->seqs[i].n, p->seqs[i].n_prompt,
                                  p->seqs[i].n_prompt + p->seqs[i].n, p->seqs[i].kept, p->seqs[i].kept_to};
        if (i < n && pack_add(p->pack, &s, (int)i))
            continue;
        if (p->pack->n_seqs) {
            if (policy_run_pack(p, measure, e) < 0)
                return -1;
            for (int k = 0; k < p->pack->n_seqs && learn_weight; k++)
                if (!p->keep[p->pack->seq[k]])
                    learn_weight[p->pack->seq[k]] = 0;
            if (learn_weight && policy_finish_pack(p, e) < 0)
                return -1;
            pack_clear(p->pack);
        }
        if (i < n && !pack_add(p->pack, &s, (int)i))
            return err_set(e, ERR_INPUT, "a rollout of %d tokens does not fit micro-tokens %d; raise it", s.n,
                           p->pack->max_tokens);
    }
    return 0;
}

/* Turns sums into means. */
static void policy_normalise(struct policy_stats *st)
{
    double seqs = st->n_seqs > 0 ? st->n_seqs : 1, tokens = st->n_tokens > 0 ? st->n_tokens : 1;

    st->entropy /= tokens;
    st->clip_share /= tokens;
    st->signed_mean /= seqs;
    st->mirror /= seqs;
    st->masked_share /= seqs;
}

int policy_gradient(struct model *m, struct model *ref, struct pack *pack, const struct policy_seq *seqs, size_t n,
                    const struct policy_options *o, struct policy_stats *ret, struct err *e)
{
    struct policy_stats st = {0};
    struct policy_pass p = {m, o->kl != KL_NONE && o->kl_coef != 0 ? ref : NULL, pack, seqs, o, NULL,
                            xcalloc(n + 1, 1), &st, xcalloc((size_t)pack->max_tokens, sizeof(float))};
    double *w = xcalloc(n + 1, sizeof *w);
    size_t *len = xcalloc(n + 1, sizeof *len);
    int rc = 0;

    for (size_t i = 0; i < n; i++) {
        len[i] = (size_t)seqs[i].n;
        p.keep[i] = true;
    }
    if (o->after_mask)
        rc = policy_walk(&p, n, true, NULL, e);
    if (rc == 0) {
        aggregate_weights(o->aggregate, o->after_mask, o->norm, len, p.keep, n, w);
        rc = policy_walk(&p, n, !o->after_mask, w, e);
    }
    policy_normalise(&st);
    if (rc == 0)
        *ret = st;
    free(p.keep);
    free(p.ref_logp);
    free(w);
    free(len);
    return rc;
}

/* ---- log-probs alone ---- */

/* Adds how log-probabilities differ from those of the sampler. */
static void policy_compare(const struct policy_seq *q, const float *logp, struct policy_mismatch *mis)
{
    for (int t = 0; t < q->n; t++) {
        double d = fabs((double)logp[t] - (double)q->behav[t]);

        mis->tokens++;
        mis->differ += d != 0;
        mis->mean += d;
        mis->worst = fmax(mis->worst, d);
    }
}

/* Log-probabilities of the pack's sequences under m; ret[i] gets those of sequence i. */
static int policy_score_pack(struct model *m, struct pack *p, const struct policy_seq *seqs, double temperature,
                             float *const *ret, struct policy_mismatch *mis, struct err *e)
{
    struct train_batch b = pack_batch(p, temperature);

    if (p->n_seqs == 0)
        return 0;
    if (model_forward(m, &b, p->logp, NULL, e) < 0)
        return -1;
    for (int k = 0; k < p->n_seqs; k++) {
        const struct policy_seq *q = &seqs[p->seq[k]];

        memcpy(ret[p->seq[k]], p->logp + p->start[k], (size_t)q->n * sizeof(float));
        policy_compare(q, ret[p->seq[k]], mis);
    }
    pack_clear(p);
    return 0;
}

int policy_logprobs(struct model *m, struct pack *pack, const struct policy_seq *seqs, size_t n, double temperature,
                    float *const *ret, struct policy_mismatch *ret_mismatch, struct err *e)
{
    struct policy_mismatch mis = {0};

    pack_clear(pack);
    for (size_t i = 0; i < n; i++) {
        int len = seqs[i].n_prompt + seqs[i].n;
        struct pack_seq s = {seqs[i].ids, len, seqs[i].n_prompt, len, seqs[i].kept, seqs[i].kept_to};

        if (pack_add(pack, &s, (int)i))
            continue;
        if (policy_score_pack(m, pack, seqs, temperature, ret, &mis, e) < 0)
            return -1;
        if (!pack_add(pack, &s, (int)i))
            return err_set(e, ERR_INPUT, "a rollout of %d tokens does not fit micro-tokens %d; raise it", len,
                           pack->max_tokens);
    }
    if (policy_score_pack(m, pack, seqs, temperature, ret, &mis, e) < 0)
        return -1;
    mis.mean /= mis.tokens > 0 ? mis.tokens : 1;
    *ret_mismatch = mis;
    return 0;
}
