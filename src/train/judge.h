/* judge.h - the trainer's view of MooreEval: submit a response while sampling goes on, read the verdict later.
 *
 * Sits on queue/verdict.h and keeps a verdict log (JSON Lines, in the run folder). A response already in the log is
 * not verified again: that makes repeated programs cheap, and a resumed run see the very same verdicts. infra and
 * unsupported verdicts are logged under their step only: they are replayed by a resume but never stick to the program.
 * Only the verdicts of the step at hand are in memory (verdict_log.h).
 * The service starts with the first response that the log does not know. */
#ifndef MC_TRAIN_JUDGE_H
#define MC_TRAIN_JUDGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/opt.h"
#include "objective/reward.h"
#include "queue/verdict.h"

struct judge;

struct judge_config {
    const char *log;        /* path of the verdict log */
    int workers, jobs;      /* verdict_config */
    const json_t *options;  /* eval's flags; part of the key; borrowed until judge_close */
    const struct reward_params *reward; /* scores are reward_of the record by these; NULL: the record's own reward */
};

/* How a verdict counts. Only passed and failed are scored; the others leave their group. */
enum outcome_kind { OUTCOME_FAILED, OUTCOME_PASSED, OUTCOME_UNSUPPORTED, OUTCOME_INFRA };

struct outcome {
    enum outcome_kind kind;
    double score;         /* the verdict's reward (judge_config.reward); 0 when it is not scored */
    const char *category; /* "" when passed; borrowed from the judge until judge_forget */
    const char *feedback; /* "" when there is none; borrowed likewise */
};

int judge_open(const struct judge_config *c, struct judge **ret, struct err *e);
void judge_close(struct judge *j); /* NULL is fine */

void judge_step(struct judge *j, int64_t step); /* the step that unscored verdicts belong to */
/* Returns a ticket, numbered from 0 since the last judge_forget; -1 on error. */
int judge_submit(struct judge *j, const char *task_code, const char *task_name, const char *response, struct err *e);
/* Waits for all tickets. progress may be NULL: called with verdicts done and submitted so far. */
int judge_wait(struct judge *j, void (*progress)(int done, int n, void *), void *ctx, struct err *e);
int judge_ready(struct judge *j);                                /* tickets with a verdict by now */
struct outcome judge_outcome(const struct judge *j, int ticket); /* after judge_wait */
const json_t *judge_verdict(const struct judge *j, int ticket);  /* after judge_wait; borrowed */
const char *judge_key(const struct judge *j, int ticket);        /* of its log entry; borrowed until judge_forget */
void judge_forget(struct judge *j);                              /* tickets end; the log stays */

struct judge_counts {
    uint64_t submitted, replayed; /* responses given, and of those answered by the log or by an equal one in flight */
};
struct judge_counts judge_counts(const struct judge *j);

/* The flags of eval that a training command passes on, as the user set them: what is not set stays the judge's own
 * default. Rows that a command lacks are skipped. New object. */
json_t *judge_options_of(const struct opts *o);

#endif
