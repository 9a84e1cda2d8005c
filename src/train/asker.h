/* asker.h - the order in which RL asks its prompts: shuffled passes, and prompts that sleep where they teach nothing.
 *
 * With sleep on, a prompt whose whole group passed is left out of the next pass, and so is one whose whole group failed
 * twice in a row: equal rewards have no advantage. What rejection sampling has seen of a prompt counts too, so that the
 * first pass asks what is in reach. It depends on seed, step and verdicts only; the state is JSON, part
 * of a checkpoint. */
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
    int64_t drawn;    /* taken from passes so far, sleepers included; the pass is drawn / prompts */
    int64_t *until;   /* (prompts) asleep before this pass */
    uint8_t *failed;  /* (prompts) groups in a row that failed whole */
};

void asker_init(struct asker *a, const struct prompt_set *p, uint64_t seed, bool sleep);
void asker_free(struct asker *a);
/* The next prompt that is awake. Sleepers are passed by; all of them asleep is no end, for they wake in the pass
 * after. */
const struct prompt_item *asker_next(struct asker *a);
/* What a group of 'scored' samples did, passed of them: both 0 where it says nothing. */
void asker_note(struct asker *a, const struct prompt_item *p, int passed, int scored);
/* The same for groups that were sampled before the run: lines {"name","passed","scored"}, in the file's order; names
 * that no prompt has are passed by. */
int asker_note_file(struct asker *a, const char *path, struct err *e);
int asker_sleeping(const struct asker *a);

json_t *asker_save(const struct asker *a);             /* new: {"drawn","asleep":{id: pass},"failed":{id: n}} */
void asker_load(struct asker *a, const json_t *state); /* names that no prompt has any more are left out */

#endif
