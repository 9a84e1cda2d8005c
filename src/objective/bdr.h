/* bdr.h - Buffered Dynamic Retry (MusaCoder paper): what a group that failed entirely is still good for.
 *
 * When every sample of a group fails, (prompt, one failing program, MooreEval's error) enters a bounded first-in
 * first-out buffer; the oldest entry falls out when it is full. With a small probability a training prompt is taken
 * from the buffer's head as a feedback-conditioned repair task. Taking removes it: if the repair group fails too, the
 * fresh failure enters again at the tail. Its rollouts are fresh, so they need no importance weight.
 * The buffer owns copies of its strings. Its state is plain JSON, part of every checkpoint. */
#ifndef MC_BDR_H
#define MC_BDR_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/rng.h"

struct bdr_item {
    char *prompt_id; /* which RL prompt */
    char *response;  /* the failing response, as the model wrote it */
    char *feedback;  /* MooreEval's feedback */
};

/* What the latest repair groups made of their tasks. */
#define BDR_WINDOW 4
struct bdr_tries {
    int passed, scored;
};

struct bdr {
    struct bdr_item *ring;
    size_t cap, head, n;
    struct bdr_tries tries[BDR_WINDOW]; /* a ring: the next goes to noted % BDR_WINDOW */
    int noted;
};

#define BDR_CAP 256
#define BDR_PROBABILITY 0.1
#define BDR_MIN_PASS 0.03
#define BDR_PROBE 0.125 /* of the probability, while the gate is shut: a model may learn to mend */

void bdr_init(struct bdr *b, size_t cap); /* cap 0: nothing is ever kept */
void bdr_free(struct bdr *b);
void bdr_push(struct bdr *b, const char *prompt_id, const char *response, const char *feedback);

/* Draws one uniform from r always (so that the stream does not depend on the buffer's content). True with probability
 * 'probability' when the buffer is not empty: *ret is the oldest entry, owned by the caller (bdr_item_free). */
bool bdr_draw(struct bdr *b, double probability, struct rng *r, struct bdr_item *ret);
void bdr_item_free(struct bdr_item *it);

/* A repair group has ended: passed of its scored samples. */
void bdr_note(struct bdr *b, int passed, int scored);
/* False when the last BDR_WINDOW repair groups passed less often than min in all. */
bool bdr_open(const struct bdr *b, double min);

json_t *bdr_save(const struct bdr *b);                           /* new: {"cap","items":[{..}] oldest first,"tries"} */
int bdr_load(struct bdr *b, const json_t *state, struct err *e);       /* replaces the content; cap stays b's */

#endif
