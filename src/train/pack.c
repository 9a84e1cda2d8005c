/* pack.c - see pack.h. */
#include "train/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Makes an empty pack for max_tokens tokens. */
void pack_init(struct pack *p, int max_tokens)
{
    size_t n = (size_t)max_tokens;

    *p = (struct pack){.max_tokens = max_tokens, .max_seqs = max_tokens / 2 + 1};
    p->tokens = xcalloc(n, sizeof *p->tokens);
    p->targets = xcalloc(n, sizeof *p->targets);
    p->cu = xcalloc((size_t)p->max_seqs + 1, sizeof *p->cu);
    p->seq = xcalloc((size_t)p->max_seqs, sizeof *p->seq);
    p->start = xcalloc((size_t)p->max_seqs, sizeof *p->start);
    p->kept = xcalloc(n, sizeof *p->kept);
    p->n_kept = xcalloc(n, sizeof *p->n_kept);
    p->logp = xcalloc(n, sizeof *p->logp);
    p->entropy = xcalloc(n, sizeof *p->entropy);
    p->dlogp = xcalloc(n, sizeof *p->dlogp);
    p->dentropy = xcalloc(n, sizeof *p->dentropy);
}

/* Frees the pack's arrays. */
void pack_free(struct pack *p)
{
    free(p->tokens);
    free(p->targets);
    free(p->cu);
    free(p->seq);
    free(p->start);
    free(p->kept);
    free(p->n_kept);
    free(p->logp);
    free(p->entropy);
    free(p->dlogp);
    free(p->dentropy);
    *p = (struct pack){0};
}

/* Empties the pack; its memory stays. */
void pack_clear(struct pack *p)
{
    p->n_tokens = p->n_seqs = 0;
    p->keeps = false;
    memset(p->dlogp, 0, (size_t)p->max_tokens * sizeof *p->dlogp);
    memset(p->dentropy, 0, (size_t)p->max_tokens * sizeof *p->dentropy);
}

/* Predictions [from, to) stand one position before their ids. */
static void pack_add_kept(struct pack *p, const struct pack_seq *s, int base)
{
    for (int t = 0; t < s->n; t++)
        p->n_kept[base + t] = 0;
    for (int i = 0; i < s->to - s->from && s->kept_to; i++) {
        int at = base + s->from - 1 + i, from = i ? s->kept_to[i - 1] : 0;
        p->kept[at] = s->kept + from;
        p->n_kept[at] = s->kept_to[i] - from;
    }
    p->keeps |= s->kept_to != NULL;
}

bool pack_add(struct pack *p, const struct pack_seq *s, int number)
{
    int base = p->n_tokens;

    if (s->n > p->max_tokens - base || p->n_seqs == p->max_seqs)
        return false;
    memcpy(p->tokens + base, s->ids, (size_t)s->n * sizeof *p->tokens);
    for (int t = 0; t < s->n; t++)
        p->targets[base + t] = t + 1 >= s->from && t + 1 < s->to ? s->ids[t + 1] : -1;
    pack_add_kept(p, s, base);
    p->seq[p->n_seqs] = number;
    p->start[p->n_seqs] = base + s->from - 1;
    p->n_tokens += s->n;
    p->cu[++p->n_seqs] = p->n_tokens;
    return true;
}

struct train_batch pack_batch(const struct pack *p, double temperature)
{
    return (struct train_batch){.tokens = p->tokens, .cu_seqlens = p->cu, .n_seq = p->n_seqs, .targets = p->targets,
                                .temperature = (float)temperature, .kept = p->keeps ? p->kept : NULL,
                                .n_kept = p->keeps ? p->n_kept : NULL};
}
