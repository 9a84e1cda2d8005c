/* rollout.c - see rollout.h. One turn = one sampler run over the live trajectories + one wait for the judge. */
#include "train/rollout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/dialogue.h"
#include "base/log.h"
#include "base/mem.h"
#include "task/repair_text.h"

int rollout_group_init(struct rollout_group *g, struct tokenizer *tok, const json_t *messages, int n, struct err *e)
{
    if (dialogue_chat_begin(&g->prompt, tok, messages, e) < 0)
        return -1;
    g->n = n;
    g->r = xcalloc((size_t)n, sizeof *g->r);
    return 0;
}

int rollout_group_ids(struct rollout_group *g, struct tokenizer *tok, const int32_t *ids, size_t n_ids, int n,
                      struct err *e)
{
    if (chat_begin(&g->prompt, tok, CHAT_THINK_DEFAULT, e) < 0)
        return -1;
    ivec_append(&g->prompt.ids, ids, n_ids);
    g->n = n;
    g->r = xcalloc((size_t)n, sizeof *g->r);
    return 0;
}

static void rollout_turn_free(struct rollout_turn *t)
{
    free(t->added);
    free(t->ids);
    free(t->logp);
    free(t->kept);
    free(t->kept_to);
    free(t->text);
    free(t->written);
    free(t->feedback);
}

void rollout_group_free(struct rollout_group *g)
{
    for (int i = 0; i < g->n; i++) {
        for (int k = 0; k < ROLLOUT_MAX_TURNS; k++)
            rollout_turn_free(&g->r[i].turn[k]);
        if (g->r[i].chat.tok)
            chat_free(&g->r[i].chat);
    }
    free(g->r);
    free(g->before);
    if (g->prompt.tok)
        chat_free(&g->prompt);
    *g = (struct rollout_group){0};
}

bool rollout_has(const struct rollout *r, enum outcome_kind kind)
{
    for (int k = 0; k < r->turns; k++)
        if (r->turn[k].kind == kind)
            return true;
    return false;
}

bool rollout_scored(const struct rollout *r)
{
    return r->turns > 0 && !rollout_has(r, OUTCOME_INFRA) && !rollout_has(r, OUTCOME_UNSUPPORTED);
}

int rollout_room(int positions, int max_new)
{
    return positions - (max_new < ROLLOUT_MIN_ROOM ? max_new : ROLLOUT_MIN_ROOM);
}

/* A live trajectory of the current turn: group and index within it, the judge's ticket. */
struct rollout_slot {
    int group, index, ticket;
};

struct rollout_turn_state {
    struct rollout_group *g;
    struct tokenizer *tok;
    struct verdicts *v;
    const struct reward_params *reward;
    struct rollout_slot *slots; /* in the sampler's order: request by request, sample by sample */
    int *first;         /* slot of a request's first sample */
    int n_slots, n_reqs, k;
    int room; /* longest request */
    struct err *e;
    bool failed;
    struct progress bar;
    const char *name;
};

static struct rollout *rollout_of(const struct rollout_turn_state *t, const struct rollout_slot *s)
{
    return &t->g[s->group].r[s->index];
}

/* Called by the sampler as samples finish: the judge starts while others are still being drawn. */
static void rollout_on_sample(void *ctx, const struct sample *sm)
{
    struct rollout_turn_state *t = ctx;
    struct rollout_slot *s = &t->slots[t->first[sm->request] + sm->index];
    const struct rollout_group *g = &t->g[s->group];
    struct rollout_turn *u = &rollout_of(t, s)->turn[t->k];
    const char *before = t->k ? rollout_program(u - 1) : g->before;

    if (t->failed || sm->finish == FINISH_CANCELLED)
        return;
    u->text = tokenizer_text(t->tok, sm->tokens, (size_t)sm->n, true);
    u->written = before ? mend_apply(before, u->text) : NULL;
    s->ticket = verdicts_submit(t->v, &(struct verdict_request){.task_code = g->task_code, .task_name = g->task_name,
                                                                .candidate = rollout_program(u), .is_response = true},
                                t->e);
    if (s->ticket < 0)
        t->failed = true;
}

/* A callback of the engine: moves the bar, if the batch has one. */
static void rollout_on_progress(void *ctx, uint64_t tokens, int done, int total)
{
    struct rollout_turn_state *t = ctx;

    if (t->name) {
        progress_note(&t->bar, "sampled %d of %d, judged %d", done, total, verdicts_ready(t->v));
        progress_at(&t->bar, (uint64_t)done);
    }
}

/* Moves a sample into its turn. */
static void rollout_keep_sample(struct rollout_turn *u, struct sample *sm)
{
    u->ids = sm->tokens;
    u->logp = sm->logp;
    u->n = sm->n;
    u->cut = sm->finish == FINISH_LENGTH;
    u->kept = sm->kept;
    u->kept_to = sm->kept_to;
    sm->tokens = sm->kept = NULL;
    sm->kept_to = NULL;
    sm->logp = NULL;
}

/* Takes the verdict of the slot's turn. */
static void rollout_keep_verdict(struct rollout_turn_state *t, const struct rollout_slot *s)
{
    struct rollout *r = rollout_of(t, s);
    struct rollout_turn *u = &r->turn[r->turns++];
    struct outcome o = outcome_of(verdicts_get(t->v, s->ticket), t->reward);

    u->kind = o.kind;
    u->score = o.score;
    u->feedback = xstrdup(o.feedback);
    snprintf(u->category, sizeof u->category, "%s", o.category);
    snprintf(u->key, sizeof u->key, "%s", verdicts_key(t->v, s->ticket));
    if (o.kind == OUTCOME_PASSED)
        r->passed_turn = r->turns;
}

/* The dialogue grows by the sampled ids and the feedback. Without room for an answer it ends. */
static int rollout_extend(struct rollout_turn_state *t, const struct rollout_slot *s, const struct rollout_options *o,
                          struct err *e)
{
    struct rollout *r = rollout_of(t, s);
    struct rollout_turn *u = &r->turn[t->k], *next = &r->turn[t->k + 1];
    char *say = prompt_feedback(o->style, u->feedback, o->edits ? rollout_program(u) : NULL);
    size_t from = 0;
    int rc = 0;

    if (t->k == 0)
        rc = chat_copy(&r->chat, &t->g[s->group].prompt);
    if (rc == 0)
        from = r->chat.ids.n + (size_t)u->n;
    if (rc == 0)
        rc = dialogue_chat_go_on(&r->chat, u->ids, (size_t)u->n, say, e);
    free(say);
    if (rc < 0)
        return -1;
    r->full = (int)r->chat.ids.n > t->room;
    if (r->full)
        return 0;
    next->n_added = (int)(r->chat.ids.n - from);
    next->added = xmalloc((size_t)next->n_added * sizeof *next->added);
    memcpy(next->added, r->chat.ids.v + from, (size_t)next->n_added * sizeof *next->added);
    return 0;
}

/* Samples one turn of all slots. */
static int rollout_sample_turn(struct rollout_engine *d, const struct rollout_options *o, struct rollout_turn_state *t,
                               const struct sample_request *reqs, struct sample **ret, size_t *n, struct err *e)
{
    struct sampler_options so = {.temperature = (float)o->temperature, .top_p = o->top_p > 0 ? (float)o->top_p : 1,
                                 .keep = o->top_p > 0 && o->top_p < 1, .max_batch = o->max_batch,
                                 .max_new = o->max_new, .on_sample = rollout_on_sample, .progress = rollout_on_progress,
                                 .ctx = t};
    double start = now_s(), drawn;
    int rc;

    progress_start(&t->bar, o->name ? o->name : "", 0, (uint64_t)t->n_slots);
    t->e = e;
    rc = rollout_engine_run(d, &so, reqs, t->n_reqs, ret, n, e);
    drawn = now_s();
    if (rc == 0 && t->failed)
        rc = -1;
    if (rc == 0)
        rc = verdicts_wait(t->v, 0, NULL, NULL, e);
    if (o->times) {
        o->times->sampling += drawn - start;
        o->times->judging += now_s() - drawn;
    }
    return rc;
}

/* Samples a turn, has it judged and settles which slots go on. */
static int rollout_play_turn(struct rollout_engine *d, const struct rollout_options *o, struct rollout_turn_state *t,
                             struct sample_request *reqs, struct err *e)
{
    struct sample *sm = NULL;
    size_t n = 0;
    int rc = rollout_sample_turn(d, o, t, reqs, &sm, &n, e);

    for (int i = 0; i < t->n_slots && rc == 0; i++) {
        struct rollout_slot *s = &t->slots[i];
        struct rollout *r = rollout_of(t, s);

        rollout_keep_sample(&r->turn[t->k], &sm[i]);
        rollout_keep_verdict(t, s);
        if (r->turn[t->k].kind == OUTCOME_FAILED && r->turns < o->turns)
            rc = rollout_extend(t, s, o, e);
    }
    samples_free(sm, n);
    verdicts_forget(t->v);
    return rc;
}

/* Makes the requests of the first turn; prompts that are too long make none. */
static void rollout_first_turn(struct rollout_turn_state *t, struct sample_request *reqs, int n_groups)
{
    t->n_slots = t->n_reqs = 0;
    for (int i = 0; i < n_groups; i++) {
        const struct rollout_group *g = &t->g[i];

        if ((int)g->prompt.ids.n > t->room)
            continue;
        reqs[t->n_reqs] = (struct sample_request){.prompt = g->prompt.ids.v, .n_prompt = (int)g->prompt.ids.n,
                                                  .n_samples = g->n, .seed = g->seed};
        t->first[t->n_reqs++] = t->n_slots;
        for (int k = 0; k < g->n; k++)
            t->slots[t->n_slots++] = (struct rollout_slot){i, k, -1};
    }
}

/* One request for each trajectory that goes on; its seed depends on group, index and turn only. */
static void rollout_next_turn(struct rollout_turn_state *t, struct sample_request *reqs, int n_groups)
{
    t->n_slots = t->n_reqs = 0;
    for (int i = 0; i < n_groups; i++)
        for (int k = 0; k < t->g[i].n; k++) {
            const struct rollout *r = &t->g[i].r[k];

            if (r->turns != t->k || r->turn[t->k - 1].kind != OUTCOME_FAILED || r->full)
                continue;
            uint64_t seed = t->g[i].seed * 0x9e3779b97f4a7c15u + (uint64_t)(k + 1) * 64 + (uint64_t)t->k;
            reqs[t->n_reqs] = (struct sample_request){.prompt = r->chat.ids.v, .n_prompt = (int)r->chat.ids.n,
                                                      .n_samples = 1, .seed = seed};
            t->first[t->n_reqs++] = t->n_slots;
            t->slots[t->n_slots++] = (struct rollout_slot){i, k, -1};
        }
}

int rollout_run(struct rollout_engine *d, struct tokenizer *tok, struct verdicts *v, const struct rollout_options *o,
                struct rollout_group *g, int n_groups, struct err *e)
{
    struct rollout_turn_state t = {.g = g, .tok = tok, .v = v, .reward = o->reward, .name = o->name};
    struct sample_request *reqs;
    size_t total = 0;
    int rc = 0;

    t.room = rollout_room(o->positions, o->max_new);
    for (int i = 0; i < n_groups; i++)
        total += (size_t)g[i].n;
    t.slots = xcalloc(total + 1, sizeof *t.slots);
    t.first = xcalloc(total + 1, sizeof *t.first);
    reqs = xcalloc(total + 1, sizeof *reqs);
    for (t.k = 0; t.k < o->turns && rc == 0; t.k++) {
        if (t.k == 0)
            rollout_first_turn(&t, reqs, n_groups);
        else
            rollout_next_turn(&t, reqs, n_groups);
        if (t.n_slots == 0)
            break;
        rc = rollout_play_turn(d, o, &t, reqs, e);
    }
    free(t.slots);
    free(t.first);
    free(reqs);
    return rc;
}
