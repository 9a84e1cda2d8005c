/* aggregate.c - see aggregate.h. */
#include "train/aggregate.h"

#include <string.h>

static const char *const names[] = {"token_mean", "seq_mean_token_mean", "seq_mean_token_sum",
                                    "seq_mean_token_sum_norm"};

/* *ret is what the word says. ERR_INPUT for another word. */
int aggregate_kind_of(const char *name, enum aggregate_kind *ret, struct err *e)
{
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, names[i])) {
            *ret = (enum aggregate_kind)i;
            return 0;
        }
    return err_set(e, ERR_INPUT, "no loss aggregation '%s'; use %s, %s, %s or %s", name, names[0], names[1], names[2],
                   names[3]);
}

/* Weight of one token in a batch of so many tokens and sequences; len: of its own sequence. */
static double aggregate_weight_of(enum aggregate_kind kind, double tokens, double seqs, double len, double norm)
{
    switch (kind) {
    case AGG_TOKEN_MEAN: return 1 / tokens;
    case AGG_SEQ_MEAN_TOKEN_MEAN: return 1 / (seqs * len);
    case AGG_SEQ_MEAN_TOKEN_SUM: return 1 / seqs;
    case AGG_SEQ_MEAN_TOKEN_SUM_NORM: break;
    }
    return 1 / (seqs * norm);
}

void aggregate_weights(enum aggregate_kind kind, bool after_mask, double norm, const size_t *len, const bool *keep,
                       size_t n, double *w)
{
    double tokens = 0, seqs = 0;

    for (size_t i = 0; i < n; i++) {
        if (len[i] == 0 || (after_mask && keep && !keep[i]))
            continue;
        tokens += (double)len[i];
        seqs += 1;
    }
    for (size_t i = 0; i < n; i++) {
        bool out = len[i] == 0 || (keep && !keep[i]);
        w[i] = out ? 0 : aggregate_weight_of(kind, tokens, seqs, (double)len[i], norm);
    }
}
