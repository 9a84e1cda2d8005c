/* record.h - building a verdict record (schema musacoder.verdict/1, or /2 where the judge replays: it adds "replay"),
 * and its precedence rules.
 *
 * Stages only ever add: sections with record_set, and reasons with record_blame. record_settle then picks status,
 * category and stage from the reasons: the first category of
 *     extraction_error compile_error cheating unsupported timeout runtime_error correctness_error
 * wins; infra wins over all, because then nothing else was really observed. */
#ifndef MC_RECORD_H
#define MC_RECORD_H

#include <jansson.h>
#include <stdbool.h>

#define RECORD_SCHEMA "musacoder.verdict/1"
#define RECORD_SCHEMA_REPLAY "musacoder.verdict/2"

/* A new record with all keys of the schema present, in order; status "passed" until blamed. */
json_t *record_new(const char *task, const char *task_sha256, const char *candidate, const char *candidate_sha256,
                   const char *backend, const char *protocol);
void record_set(json_t *rec, const char *key, json_t *section); /* takes the reference */

/* Appends a reason {"category","stage","message"} and returns it (borrowed), so that the caller can add details. */
json_t *record_blame(json_t *rec, const char *category, const char *stage, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
bool record_blamed(const json_t *rec);
void record_settle(json_t *rec);
const json_t *record_reason(const json_t *rec); /* the deciding reason (borrowed), NULL if passed */

void record_stage_ms(json_t *rec, const char *stage, double ms);
/* Of stage_ms.waiting, what for: "memory" (schedule.h), "slot", "device" (schedule.h). Section waiting_ms. */
void record_waiting(json_t *rec, const char *what, double ms);

/* A request that cannot be judged at all still gets an answer: a new infra record that says why. */
json_t *record_refusal(const char *task, const char *backend, const char *protocol, const char *why);

#endif
