/* stage_feedback.c - puts the record into words. */

#include "base/json.h"
#include "eval/stage/stage.h"
#include "eval/verdict/codes.h"
#include "eval/verdict/feedback.h"
#include "eval/verdict/locate.h"
#include "eval/verdict/record.h"

/* The stage: sets code, place and the words for the next turn. */
static int feedback_run(struct job *j, struct err *e)
{
    struct buf b;

    (void)e;
    record_set(j->rec, "code", json_string(code_of(j->rec)->id));
    record_set(j->rec, "place", locate_verdict(j->rec, j->cand->text, j->cand->n, j->code));
    buf_init(&b, FEEDBACK_MAX);
    feedback_text(j->rec, &b);
    record_set(j->rec, "feedback", json_utf8(b.p, b.n));
    buf_free(&b);
    return 0;
}

const struct stage stage_feedback = {"feedback", feedback_run, true};
