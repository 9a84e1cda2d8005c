/* entropy.h - how much there is to learn in a corpus: an estimate of what its answers cost to tell, in nats a byte.
 *
 * A byte is predicted from the 0, 1, 2, 3, 5, 8 and 12 bytes in front of it, each order blended with the shorter one by
 * Witten and Bell's weights (Witten and Bell 1991, method C: n / (n + distinct)). Counts are those of everything seen
 * before; requests are learned from, answers alone are measured, and the first quarter of the text is not. It is an
 * upper bound: a model that understands the request needs less. */
#ifndef MC_SYNTH_ENTROPY_H
#define MC_SYNTH_ENTROPY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct entropy;

struct entropy *entropy_new(void);
void entropy_free(struct entropy *e);

/* One record: request and answer. Beyond ENTROPY_BYTES of text in all nothing more is learned or measured; such records
 * still count as texts. */
#define ENTROPY_BYTES ((size_t)1 << 19)
void entropy_add(struct entropy *e, const char *request, const char *answer);
/* The messages of a record: the last one is the answer. */
void entropy_add_messages(struct entropy *e, const json_t *messages);

/* No text is read any more. */
bool entropy_is_full(const struct entropy *e);

/* {"records", "distinct_requests", "distinct_answers", "measured_bytes", "nats_per_byte", "nats_per_answer"}: texts
 * that differ in any byte; null where nothing was measured. */
json_t *entropy_json(const struct entropy *e);

#endif
