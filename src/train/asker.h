/* asker.h - the order in which RL asks its prompts: shuffled passes, and prompts that sleep where they teach nothing.
 *
 * With sleep on, a prompt whose whole group passed, failed or has no verdict sleeps, for equal rewards have no
 * advantage: it wakes when twice as many prompts were asked as there are. Those passed by do not count, or a few that
 * are awake would wake the others at once. A prompt that was asked rests for an eighth of that number of prompts.
 * Where nobody is awake, the one that was asked longest ago is. What rejection sampling has seen of a prompt counts
 * too, so that the first steps ask what is in reach. The order depends on seed, steps and verdicts only; the state is
 * JSON, part of a checkpoint. */
#ifndef MC_TRAIN_ASKER_H
#define MC_TRAIN_ASKER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "train/data.h"

struct asker {
    const struct prompt_set *prompts;
    uint64_t seed;
    bool sleep;
    uint32_t *order;  /* (prompts) this pass */
    int64_t drawn;    /* looked at so far, sleepers included; the pass is drawn / prompts */
    int64_t asked;    /* prompts that asker_next gave */
    int64_t *since;   /* (prompts) 'asked' when it was asked last or fell asleep; far below 0: never */
    bool *asleep;     /* (prompts) its last group was all of one kind */
};

void asker_init(struct asker *a, const struct prompt_set *p, uint64_t seed, bool sleep);
void asker_free(struct asker *a);
/* The next prompt that is awake, or the one that was asked longest ago. */
const struct prompt_item *asker_next(struct asker *a);
/* What a group of 'scored' samples did, passed of them. One sample says nothing; a prompt that the judge can score
 * nothing of (0) sleeps as one that failed, or it would be asked at each turn. */
void asker_note(struct asker *a, const struct prompt_item *p, int passed, int scored);
/* The same for groups that were sampled before the run: lines {"name","passed","scored"}, in the file's order; names
 * that no prompt has are passed by. */
int asker_note_file(struct asker *a, const char *path, struct err *e);
int asker_sleeping(const struct asker *a);

json_t *asker_save(const struct asker *a);             /* new: {"drawn","asked","since":{id: n},"asleep":[id]} */
void asker_load(struct asker *a, const json_t *state); /* names that no prompt has any more are left out */

#endif
