/* verdicts.h - one client of MooreEval for training, synthesis and benchmarks: submit a program while others are still
 * being made, read its verdict later; what a log knows, or what is in flight already, is not judged again.
 *
 *   verdicts_open(&(struct verdicts_config){.log = "RUN/verdicts.jsonl", .options = flags}, &v, e);
 *   ticket = verdicts_submit(v, &(struct verdict_request){code, name, text, true}, e);    for each program
 *   verdicts_wait(v, 0, NULL, NULL, e);
 *   verdicts_get(v, ticket);
 *   verdicts_forget(v);
 *
 * The log (JSON Lines, {"key","task","verdict"}) makes a resumed run see the very same verdicts. A verdict that lasts
 * is kept under the program's key. Others belong to a step: a resume of that step replays them, and they never stick to
 * the program. The service starts with the first program that is not known. Not for several threads at once. */
#ifndef MC_VERDICTS_VERDICTS_H
#define MC_VERDICTS_VERDICTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/opt.h"
#include "verdicts/verdict_service.h"

struct verdicts;

struct verdicts_config {
    struct verdict_config service; /* who judges */
    const char *log;               /* path; NULL: nothing is kept */
    const json_t *options;         /* eval's flags; part of the key; borrowed until verdicts_close */
    bool (*lasts)(void *ctx, const json_t *verdict); /* NULL: what passed or failed */
    /* In verdicts_wait, for each ticket as soon as its verdict is there, in no order. -1 ends the wait. May be NULL. */
    int (*arrived)(void *ctx, int ticket, const json_t *verdict, struct err *e);
    void *ctx;
};

int verdicts_open(const struct verdicts_config *c, struct verdicts **ret, struct err *e);
void verdicts_close(struct verdicts *v); /* NULL is fine */

/* The step of verdicts that do not last; before the first call they are not kept. */
void verdicts_step(struct verdicts *v, int64_t step);
/* Returns a ticket, numbered from 0 since the last verdicts_forget; -1 on error. r's options are the config's. */
int verdicts_submit(struct verdicts *v, const struct verdict_request *r, struct err *e);
/* Waits until at most 'left' programs are without a verdict. progress may be NULL: how many of the programs have one,
 * on change. ERR_STOP after Ctrl-C; what was there by then has arrived. */
int verdicts_wait(struct verdicts *v, int left, void (*progress)(int done, int n, void *), void *ctx, struct err *e);
int verdicts_ready(struct verdicts *v);                           /* tickets with a verdict by now */
int verdicts_programs(const struct verdicts *v);                  /* different ones, since verdicts_forget */
int verdicts_open_programs(const struct verdicts *v);             /* without a verdict, as verdicts_wait last saw it */
const json_t *verdicts_get(const struct verdicts *v, int ticket); /* after verdicts_wait; borrowed until forgotten */
const char *verdicts_key(const struct verdicts *v, int ticket);   /* of its log entry; borrowed likewise */
bool verdicts_known(const struct verdicts *v, int ticket);        /* the log had it */
void verdicts_forget(struct verdicts *v);                         /* tickets end; the log stays */

struct verdicts_counts {
    uint64_t submitted, replayed; /* programs given, and of those answered by the log or by an equal one in flight */
};
struct verdicts_counts verdicts_counts(const struct verdicts *v);

/* The flags of eval that a command passes on, as the user set them: what is not set stays the judge's own default. Rows
 * that a command lacks are skipped. New object. */
json_t *verdicts_options_of(const struct opts *o);

#endif
