/* agent.c - the loop: an answer, its verdict, the best so far, and what the model is told next. */
#include "agent/agent.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "eval/verdict/feedback.h"
#include "task/bundle.h"
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

/* As one text, which 'eval' takes; owned, NULL if there is none. */
static char *agent_program_of(const char *response, const struct task *task)
{
    size_t n = strlen(response);
    struct extraction x;
    struct buf all;

    extract_code(response, n, EXTRACT_RESPONSE, &x);
    buf_init(&all, BUF_MAX_TEXT);
    if (bundle_of_response(response, n, &x, NULL, task->code, NULL, &all))
        return buf_detach(&all);
    buf_free(&all);
    return x.found ? xstrndup(response + x.offset, x.n) : NULL;
}

/* The verdict's reward; -2 without one, below any that a judge gives. */
static double agent_worth(const json_t *verdict)
{
    const json_t *r = json_object_get(verdict, "reward");

    return json_is_number(r) ? json_number_value(r) : -2;
}

/* Keeps the answer if its verdict is worth more than the best one so far. */
static void agent_keep_best(struct agent_result *r, const struct task *task, int turn, const char *response,
                            const json_t *verdict)
{
    if (r->best && agent_worth(verdict) <= agent_worth(r->best))
        return;
    json_decref(r->best);
    free(r->program);
    r->best = json_incref((json_t *)verdict);
    r->program = agent_program_of(response, task);
    r->turn = turn;
}

/* *ret is the verdict of an answer, new. */
static int agent_judge(struct eval *ev, const struct task *task, const char *response, const struct agent_options *o,
                       json_t **ret, struct err *e)
{
    struct eval_candidate c = {.name = "answer", .text = response, .n = strlen(response), .kind = EXTRACT_RESPONSE};

    return eval_one(ev, task, &c, &o->eval, ret, e);
}

struct agent_play { /* one run of the loop */
    struct answers *source;
    struct eval *ev;
    const struct task *task;
    const struct agent_options *o;
    const struct agent_listener *l;
    struct dialogue dialogue;
    struct agent_result r;
    int turn;
    bool ends;
};

/* Keeps the answer and its verdict, and goes on with what the model is told of it. */
static int agent_take_verdict(struct agent_play *p, const struct answer *a, const char *whole, const json_t *verdict,
                              struct err *e)
{
    char *say = agent_words(p->o, verdict, whole);
    int rc;

    p->r.turns = p->turn;
    agent_keep_best(&p->r, p->task, p->turn, whole, verdict);
    json_array_append_new(p->r.turns_json, json_pack("{s:i,s:o,s:O}", "turn", p->turn, "response",
                                                     json_utf8(a->text, strlen(a->text)), "verdict", verdict));
    if (p->l->on_verdict)
        p->l->on_verdict(p->turn, a, verdict, p->l->ctx);
    if (p->l->on_turn)
        p->l->on_turn(&p->r, p->l->ctx);
    p->ends = !strcmp(json_str(verdict, "status", ""), "infra") || (agent_passed(verdict) && p->o->stop_at_pass);
    rc = p->ends || p->turn == p->o->turns ? 0 : dialogue_go_on(&p->dialogue, a->ids, (size_t)a->n, a->text, say, e);
    free(say);
    free(p->r.last);
    p->r.last = xstrdup(whole);
    return rc;
}

/* A callback of answers: has the answer judged and adds feedback for the next turn. ERR_INPUT: there is no room for
 * one. */
static int agent_on_answer(void *ctx, int request, int index, const struct answer *a, struct err *e)
{
    struct agent_play *p = ctx;
    char *written = a && p->r.last ? mend_apply(p->r.last, a->text) : NULL;
    json_t *verdict = NULL;
    int rc;

    if (!a && !p->dialogue.chat.ids.n)
        return err_set(e, ERR_INPUT, "the dialogue leaves no room for an answer, says the server");
    if (!a)
        return err_set(e, ERR_INPUT, "the dialogue has %zu tokens, which leaves no room for an answer",
                       p->dialogue.chat.ids.n);
    rc = agent_judge(p->ev, p->task, written ? written : a->text, p->o, &verdict, e);
    if (rc == 0)
        rc = agent_take_verdict(p, a, written ? written : a->text, verdict, e);
    free(written);
    json_decref(verdict);
    return rc;
}

/* A callback of the source: hands text that is being written to the caller. */
static void agent_on_text(const char *text, size_t n, void *ctx)
{
    const struct agent_play *p = ctx;

    p->l->on_text(text, n, p->l->ctx);
}

/* Asks for the next turn's answer. */
static int agent_ask(struct agent_play *p, struct err *e)
{
    struct answers_options ao = {.temperature = p->o->temperature, .top_p = p->o->top_p, .max_new = p->o->max_new,
                                 .max_batch = 1, .parallel = 1, .on_answer = agent_on_answer,
                                 .on_text = p->l->on_text ? agent_on_text : NULL, .ctx = p};
    struct answers_request r = {.dialogue = &p->dialogue, .n = 1, .seed = (uint64_t)(p->o->seed + p->turn - 1)};

    return answers_draw(p->source, &ao, &r, 1, e);
}

int agent_run(struct answers *source, struct eval *ev, const struct task *task, const struct agent_options *o,
              const struct agent_listener *l, struct agent_result *ret, struct err *e)
{
    struct agent_play p = {.source = source, .ev = ev, .task = task, .o = o, .l = l, .r.turns_json = json_array()};
    char *first = prompt_task(o->style, task->code, o->target, NULL);
    json_t *messages = prompt_start(first);
    int rc = dialogue_begin(&p.dialogue, answers_tokenizer(source), messages, e);

    free(first);
    json_decref(messages);
    for (p.turn = 1; p.turn <= o->turns && rc == 0 && !p.ends; p.turn++)
        rc = agent_ask(&p, e);
    dialogue_free(&p.dialogue);
    if (rc < 0 && !p.r.best) {
        agent_result_free(&p.r);
        return -1;
    }
    *ret = p.r; /* what was reached before a stop is kept */
    return rc;
}

void agent_result_free(struct agent_result *r)
{
    json_decref(r->best);
    json_decref(r->turns_json);
    free(r->program);
    free(r->last);
    memset(r, 0, sizeof *r);
}
