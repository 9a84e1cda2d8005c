/* agent.c - see agent.h. */
#include "agent/agent.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "eval/verdict/feedback.h"
#include "task/extract.h"
#include "task/repair_text.h"

static bool agent_passed(const json_t *verdict)
{
    return !strcmp(json_str(verdict, "status", ""), "passed");
}

/* What the model is told of its answer. */
static char *agent_words(const struct agent_options *o, const json_t *verdict, const char *shown)
{
    struct buf b;
    char *said;

    buf_init(&b, 1 << 16);
    feedback_text(verdict, &b);
    if (!agent_passed(verdict)) {
        said = prompt_feedback(o->style, b.p, o->edits ? shown : NULL);
        buf_free(&b);
        return said;
    }
    said = xasprintf(
        "The program is right and legal. %s\nMake it faster and keep it right: memory traffic first (coalesced "
        "and vector loads, data used from shared memory or registers), then occupancy and launches. Answer "
        "with the complete program in one fenced Python block.",
        b.p);
    buf_free(&b);
    return said;
}

static char *agent_program_of(const char *response)
{
    struct extraction x;

    extract_code(response, strlen(response), EXTRACT_RESPONSE, &x);
    return x.found ? xstrndup(response + x.offset, x.n) : NULL;
}

static double agent_worth(const json_t *verdict)
{
    const json_t *r = json_object_get(verdict, "reward");

    return json_is_number(r) ? json_number_value(r) : -2;
}

static void agent_keep_best(struct agent_result *r, int turn, const char *response, const json_t *verdict)
{
    if (r->best && agent_worth(verdict) <= agent_worth(r->best))
        return;
    json_decref(r->best);
    free(r->program);
    r->best = json_incref((json_t *)verdict);
    r->program = agent_program_of(response);
    r->turn = turn;
}

static int agent_judge(struct eval *ev, const struct task *task, const char *response, const struct agent_options *o,
                       json_t **ret, struct err *e)
{
    struct eval_candidate c = {.name = "answer", .text = response, .n = strlen(response), .kind = EXTRACT_RESPONSE};

    return eval_one(ev, task, &c, &o->eval, ret, e);
}

/* One turn. Returns 1 to go on, 0 to end, -1. */
static int agent_play(struct talker *t, struct eval *ev, const struct task *task, const struct agent_options *o,
                      const struct agent_listener *l, json_t *messages, int turn, struct agent_result *r, struct err *e)
{
    struct talk_answer a = {0};
    json_t *verdict = NULL;
    char *written = NULL;
    const char *whole;
    int rc = talker_say(t, messages, l->on_text, l->ctx, &a, e);
    bool ends;
    char *next;

    if (rc == 0 && r->last)
        written = mend_apply(r->last, a.text);
    whole = written ? written : a.text;
    if (rc == 0)
        rc = agent_judge(ev, task, whole, o, &verdict, e);
    if (rc < 0) {
        free(written);
        talk_answer_free(&a);
        return -1;
    }
    r->turns = turn;
    agent_keep_best(r, turn, whole, verdict);
    json_array_append_new(r->turns_json, json_pack("{s:i,s:o,s:O}", "turn", turn, "response",
                                                   json_utf8(a.text, strlen(a.text)), "verdict", verdict));
    if (l->on_verdict)
        l->on_verdict(turn, &a, verdict, l->ctx);
    ends = !strcmp(json_str(verdict, "status", ""), "infra") || (agent_passed(verdict) && o->stop_at_pass);
    next = agent_words(o, verdict, whole);
    prompt_say(messages, "assistant", a.text);
    prompt_say(messages, "user", next);
    free(next);
    free(r->last);
    r->last = xstrdup(whole);
    free(written);
    json_decref(verdict);
    talk_answer_free(&a);
    return !ends;
}

int agent_run(struct talker *t, struct eval *ev, const struct task *task, const struct agent_options *o,
              const struct agent_listener *l, struct agent_result *ret, struct err *e)
{
    char *first = prompt_task(o->style, task->code, o->target, NULL);
    json_t *messages = prompt_start(first);
    struct agent_result r = {.turns_json = json_array()};
    int rc = 1;

    free(first);
    for (int turn = 1; turn <= o->turns && rc == 1; turn++)
        rc = agent_play(t, ev, task, o, l, messages, turn, &r, e);
    json_decref(messages);
    if (rc < 0 && !r.best) {
        agent_result_free(&r);
        return -1;
    }
    *ret = r; /* what was reached before a stop is kept */
    return rc < 0 ? -1 : 0;
}

void agent_result_free(struct agent_result *r)
{
    json_decref(r->best);
    json_decref(r->turns_json);
    free(r->program);
    free(r->last);
    memset(r, 0, sizeof *r);
}
