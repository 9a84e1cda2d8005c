/* later_life.h - a program that is right lives once more: is it still right behind many calls, and beside another
 * instance of ModelNew with weights of its own? Inside src/eval/stage only. */
#ifndef MC_EVAL_LATER_LIFE_H
#define MC_EVAL_LATER_LIFE_H

#include "eval/stage/stage.h"

#define LATER_LIFE_S      0.16 /* of run time for the calls that are not compared, a trial of each distribution */
#define LATER_LIFE_TRIALS 5    /* more trials add no time: a training with one asks for a fifth of it */

/* In another process: one call of another instance, more of this one, one of the other again, then calls that are
 * compared with draws of j->held.ref. call_s: run time of a call. Session, recording and state of the job are as before
 * afterwards. What cannot be lived (a constructor that allows one instance, a full log) is no mistake. 1: right, or
 * not known. 0: wrong, with *ret_worst (owned): its "earlier_calls" are the calls before, and "other_instance" says
 * that the other instance is to blame; its kind is "overwritten" where an answer lies upon one that is still held.
 * -1: infra. */
int later_life_judge(struct job *j, double call_s, json_t **ret_worst, struct err *e);

#endif
