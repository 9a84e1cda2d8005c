/* rl.c - see rl.h. */
#include "train/rl.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answers/rollout_engine.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "nn/optim.h"
#include "objective/bdr.h"
#include "task/extract.h"
#include "train/asker.h"
#include "train/average.h"
#include "train/checkpoint.h"
#include "train/data.h"
#include "train/train_metrics.h"
#include "train/minibatch.h"
#include "train/pack.h"
#include "train/rollout.h"
#include "train/rollout_log.h"

struct rl {
    const struct rl_options *o;
    struct run_folder folder; /* claimed where the options are (o->claim) */
    struct tokenizer *tok;
    struct prompt_set prompts;
    struct asker asker;
    struct model *m, *ref;
    struct rollout_engine *rollout_engine; /* with staleness apart from m, which learns meanwhile */
    struct batch *ahead;  /* (staleness) drawn and not learned from: of steps [step, sampled) */
    int64_t sampled;      /* steps whose rollouts are drawn */
    int64_t policy;       /* the step whose weights draw now; -1: a server's that are its own affair */
    struct optim *opt;
    struct average average; /* with o->average */
    struct pack pack;
    struct verdicts *verdicts;
    struct bdr bdr;
    struct train_metrics metrics;
    int64_t step, updates; /* optimiser updates so far */
    double spent;
    int room;         /* longest prompt: of max-prompt, and what leaves the model room for an answer */
};

/* What one step works on. */
struct batch {
    int64_t step, policy;            /* its own; the one whose weights drew it, or -1 */
    struct rollout_group *g;
    const struct prompt_item **item; /* (n) */
    bool *repair;                    /* (n) from the retry buffer */
    bool *used, *kept;               /* (n) has an advantage; learned from: with oversample not all are */
    int n;
    double *reward, *adv;            /* (n * group) */
    bool *valid;
    struct policy_seq *seqs;         /* (n * group), valid ones with at least one token */
    int *group_of;                   /* (n_seqs) their group's number, ascending */
    size_t n_seqs;
    int32_t **ids;                   /* (n_seqs) owned: prompt + response */
    float **scored;                  /* (n_seqs) owned: log-probs by the training pass, with 'strict'; else NULL */
    struct policy_mismatch mismatch; /* of those to the sampler's */
    size_t *cut;                     /* (minibatches + 1) see minibatch_cut */
    struct rollout_times times;
    double learning;                 /* seconds */
    int skipped;                     /* groups that infra and unsupported verdicts left without signal */
    int too_long, dropped;           /* prompts, and repair tasks, that were drawn and are too long */
};

/* ---- prompts ---- */

/* The conversation of a repair task: the request, the program that failed, what the judge said. New array. */
static json_t *rl_repair_messages(const struct rl *s, const struct prompt_item *p, const struct bdr_item *it)
{
    json_t *messages = json_deep_copy(p->messages);

    prompt_turn(messages, s->o->style, it->response, it->feedback, s->o->edits ? it->response : NULL);
    return messages;
}

/* A buffer of programs that the model cannot mend costs verdicts and teaches nothing: it is asked less until it can. */
static double rl_retry_probability(const struct rl *s)
{
    return bdr_open(&s->bdr, s->o->bdr_min_pass) ? s->o->bdr_probability : s->o->bdr_probability * BDR_PROBE;
}

/* One uniform of r, whatever comes of it. True when the group is a repair task that fits. */
static bool rl_open_repair(struct rl *s, struct batch *b, struct rng *r, struct rollout_group *g, int *rc,
                           struct err *e)
{
    const struct prompt_item *p;
    struct bdr_item it;
    json_t *messages;

    *rc = 0;
    if (!bdr_draw(&s->bdr, rl_retry_probability(s), r, &it))
        return false;
    if ((p = prompt_set_find(&s->prompts, it.prompt_id))) {
        messages = rl_repair_messages(s, p, &it);
        *rc = rollout_group_init(g, s->tok, messages, s->o->group, e);
        json_decref(messages);
        if (*rc == 0)
            g->before = xstrdup(it.response);
    }
    bdr_item_free(&it);
    if (!p || *rc < 0)
        return false;
    b->item[b->n] = p;
    if ((int)g->prompt.ids.n <= s->room)
        return true;
    /* The program and its feedback made it too long: it leaves the buffer for good, the run goes on. */
    b->dropped++;
    rollout_group_free(g);
    return false;
}

/* The next prompt that fits; three passes without one are an error: one that sleeps has woken by then. */
static int rl_open_fresh(struct rl *s, struct batch *b, struct rollout_group *g, struct err *e)
{
    for (size_t tries = 0; tries < 3 * s->prompts.n; tries++) {
        const struct prompt_item *p = asker_next(&s->asker);

        if (rollout_group_init(g, s->tok, p->messages, s->o->group, e) < 0)
            return -1;
        b->item[b->n] = p;
        if ((int)g->prompt.ids.n <= s->room)
            return 0;
        b->too_long++;
        rollout_group_free(g);
    }
    return err_set(e, ERR_INPUT, "every prompt of '%s' has more than %d tokens; raise max-prompt (%d), within "
                                 "the model's %d positions", s->o->data, s->room, s->o->max_prompt,
                   s->m->config.max_positions);
}

/* Opens the batch's next group: a prompt, or a failed answer to mend. */
static int rl_open_group(struct rl *s, struct batch *b, struct rng *r, struct err *e)
{
    struct rollout_group *g = &b->g[b->n];
    int rc;

    b->repair[b->n] = rl_open_repair(s, b, r, g, &rc, e);
    if (rc < 0 || (!b->repair[b->n] && rl_open_fresh(s, b, g, e) < 0))
        return -1;
    g->task_code = b->item[b->n]->task_code;
    g->task_name = b->item[b->n]->id;
    g->seed = rng_u64(r);
    b->n++;
    return 0;
}

/* Groups that are drawn for a step, of which 'prompts' are learned from. */
static int rl_groups_drawn(const struct rl_options *o)
{
    return o->oversample > 1 ? (int)ceil(o->oversample * o->prompts - 1e-9) : o->prompts;
}

/* Allocates an empty batch for a step. */
static void rl_batch_make(const struct rl *s, struct batch *b, int64_t step)
{
    size_t n = (size_t)rl_groups_drawn(s->o), total = n * (size_t)s->o->group;

    *b = (struct batch){.step = step, .policy = s->policy, .g = xcalloc(n, sizeof *b->g),
                        .item = xcalloc(n, sizeof *b->item), .repair = xcalloc(n, 1), .used = xcalloc(n, 1),
                        .kept = xcalloc(n, 1),
                        .reward = xcalloc(total, sizeof(double)), .adv = xcalloc(total, sizeof(double)),
                        .valid = xcalloc(total, 1), .seqs = xcalloc(total, sizeof *b->seqs),
                        .ids = xcalloc(total, sizeof *b->ids), .scored = xcalloc(total, sizeof *b->scored),
                        .group_of = xcalloc(total, sizeof *b->group_of),
                        .cut = xcalloc((size_t)s->o->minibatches + 1, sizeof *b->cut)};
}

/* Draws the batch's groups by the step's own seed. */
static int rl_batch_open(struct rl *s, struct batch *b, int64_t step, struct err *e)
{
    struct rng r;

    rl_batch_make(s, b, step);
    rng_seed(&r, s->o->seed, 0x100000000u + (uint64_t)step);
    for (int i = 0; i < rl_groups_drawn(s->o); i++)
        if (rl_open_group(s, b, &r, e) < 0)
            return -1;
    return 0;
}

/* Frees a batch and its groups. */
static void rl_batch_free(struct batch *b)
{
    for (int i = 0; i < b->n; i++)
        rollout_group_free(&b->g[i]);
    for (size_t i = 0; i < b->n_seqs; i++) {
        free(b->ids[i]);
        free(b->scored[i]);
    }
    free(b->scored);
    free(b->g);
    free(b->item);
    free(b->repair);
    free(b->used);
    free(b->kept);
    free(b->reward);
    free(b->adv);
    free(b->valid);
    free(b->seqs);
    free(b->ids);
    free(b->group_of);
    free(b->cut);
}

/* ---- rewards and advantages ---- */

/* *ret is the rollout's reward over its turns, by the chosen formula. */
static int rl_reward_of(const struct rl *s, const struct rollout *r, double *ret, struct err *e)
{
    double score[ROLLOUT_MAX_TURNS];

    for (int k = 0; k < r->turns; k++)
        score[k] = r->turn[k].score;
    if (s->o->primeecho && s->o->turns > 1)
        return primeecho_reward(&s->o->echo, score, r->turns, r->passed_turn, ret, e);
    *ret = score[0];
    return 0;
}

/* The loss covers the first response only. */
static void rl_add_seq(struct batch *b, int group, const struct rollout *r, double adv)
{
    const struct chat *prompt = &b->g[group].prompt;
    const struct rollout_turn *first = &r->turn[0];
    size_t np = prompt->ids.n;
    int32_t *ids = xmalloc((np + (size_t)first->n) * sizeof *ids);

    memcpy(ids, prompt->ids.v, np * sizeof *ids);
    memcpy(ids + np, first->ids, (size_t)first->n * sizeof *ids);
    b->ids[b->n_seqs] = ids;
    b->group_of[b->n_seqs] = group;
    b->seqs[b->n_seqs++] = (struct policy_seq){ids, (int)np, first->n, first->logp, adv, first->kept,
                                                first->kept_to};
}

/* The sceptic's control: the same rewards, of other samples. */
static void rl_permute_rewards(const struct rl *s, struct batch *b, int i)
{
    size_t at = (size_t)i * (size_t)s->o->group;
    int n = 0, who[ROLLOUT_MAX_GROUP];
    double reward[ROLLOUT_MAX_GROUP];
    struct rng r;

    for (int k = 0; k < s->o->group; k++)
        if (b->valid[at + (size_t)k])
            who[n] = k, reward[n++] = b->reward[at + (size_t)k];
    rng_seed(&r, s->o->seed, 0x500000000u + (uint64_t)b->step * (uint64_t)rl_groups_drawn(s->o) + (uint64_t)i);
    rng_shuffle(&r, reward, (size_t)n, sizeof *reward);
    for (int k = 0; k < n; k++)
        b->reward[at + (size_t)who[k]] = reward[k];
}

/* Failures are pushed down further than successes are pulled up: a group's few good answers are far likelier
 * already. */
static void rl_weigh_negative(const struct rl *s, double *adv)
{
    for (int k = 0; k < s->o->group; k++)
        if (adv[k] < 0)
            adv[k] *= s->o->negative_weight;
}

/* Rewards and advantages of group i; rollouts without a score are left out. */
static int rl_score_group(struct rl *s, struct batch *b, int i, struct err *e)
{
    struct rollout_group *g = &b->g[i];
    size_t at = (size_t)i * (size_t)s->o->group;
    int used;

    for (int k = 0; k < g->n; k++) {
        const struct rollout *r = &g->r[k];

        b->valid[at + (size_t)k] = rollout_scored(r) && r->turn[0].n > 0;
        if (b->valid[at + (size_t)k] && rl_reward_of(s, r, &b->reward[at + (size_t)k], e) < 0)
            return -1;
    }
    if (s->o->permute_rewards)
        rl_permute_rewards(s, b, i);
    used = advantage_group(s->o->advantage, s->o->advantage_eps, b->reward + at, b->valid + at, (size_t)g->n,
                           b->adv + at, e);
    if (used < 0)
        return -1;
    rl_weigh_negative(s, b->adv + at);
    b->used[i] = used > 0;
    b->skipped += used == 0;
    return 0;
}

/* True where the group's advantages are not all 0. */
static bool rl_is_mixed(const struct rl *s, const struct batch *b, int i)
{
    for (int k = 0; k < s->o->group; k++)
        if (b->adv[(size_t)i * (size_t)s->o->group + (size_t)k] != 0)
            return true;
    return false;
}

/* Of the groups that were drawn: those with a signal first, then others, in the order of drawing. */
static void rl_keep_groups(const struct rl *s, struct batch *b)
{
    int n = 0;

    for (int mixed = 1; mixed >= 0; mixed--)
        for (int i = 0; i < b->n && n < s->o->prompts; i++)
            if (rl_is_mixed(s, b, i) == mixed)
                b->kept[i] = true, n++;
}

/* Adds the group's valid rollouts to what is learned. */
static void rl_add_group(const struct rl *s, struct batch *b, int i)
{
    size_t at = (size_t)i * (size_t)s->o->group;

    for (int k = 0; k < b->g[i].n && b->kept[i] && b->used[i]; k++)
        if (b->valid[at + (size_t)k])
            rl_add_seq(b, i, &b->g[i].r[k], b->adv[at + (size_t)k]);
}

/* Rewards and advantages of all groups, and which of them are used. */
static int rl_score_batch(struct rl *s, struct batch *b, struct err *e)
{
    for (int i = 0; i < b->n; i++)
        if (rl_score_group(s, b, i, e) < 0)
            return -1;
    rl_keep_groups(s, b);
    for (int i = 0; i < b->n; i++)
        rl_add_group(s, b, i);
    minibatch_cut(b->group_of, b->n_seqs, s->o->minibatches, b->cut);
    return 0;
}

/* At least two samples with a verdict, and every one of them failed. */
static bool rl_group_failed(const struct rollout_group *g)
{
    int scored = 0;

    for (int k = 0; k < g->n; k++) {
        scored += rollout_scored(&g->r[k]);
        if (g->r[k].passed_turn)
            return false;
    }
    return scored >= 2;
}

/* The first of the best first responses that are worth showing: whole, not empty. */
static const struct rollout_turn *rl_best_failure(const struct rollout_group *g)
{
    const struct rollout_turn *best = NULL;

    for (int k = 0; k < g->n; k++) {
        const struct rollout_turn *t = &g->r[k].turn[0];

        if (rollout_scored(&g->r[k]) && t->text && *t->text && !t->cut && (!best || t->score > best->score))
            best = t;
    }
    return best;
}

/* What a group tells the retry buffer, of repairs, and the order of prompts, of others. */
static void rl_note_group(struct rl *s, const struct batch *b, int i)
{
    int scored = 0, first = 0, any = 0;

    for (int k = 0; k < b->g[i].n; k++) {
        const struct rollout *r = &b->g[i].r[k];
        scored += rollout_scored(r);
        first += rollout_scored(r) && r->passed_turn == 1;
        any += rollout_scored(r) && r->passed_turn > 0;
    }
    if (b->repair[i])
        bdr_note(&s->bdr, any, scored);
    else
        asker_note(&s->asker, b->item[i], first, scored);
}

/* A group that failed entirely leaves one failing program behind. */
static void rl_feed_buffer(struct rl *s, const struct batch *b)
{
    for (int i = 0; i < b->n; i++) {
        const struct rollout_turn *t = rl_group_failed(&b->g[i]) ? rl_best_failure(&b->g[i]) : NULL;

        if (t)
            bdr_push(&s->bdr, b->item[i]->id, rollout_program(t), t->feedback);
        rl_note_group(s, b, i);
    }
}

/* ---- learning ---- */

struct learned {
    double loss, kl, grad_norm;  /* means over the updates that were made */
    double lr;                   /* of the last one */
    int updates;
    /* sums over all sequences that were looked at, in each epoch again */
    double entropy, clipped, tokens;
    double signed_mean, mirror, seqs;
    double masked[2], of_sign[2]; /* [0] advantage below 0, [1] above */
};

/* Adds x to a mean of n_before values. */
static void rl_add_mean(double *mean, double x, int n_before)
{
    *mean += (x - *mean) / (n_before + 1);
}

/* Adds an update's means. */
static void rl_add_update(struct learned *l, const struct policy_stats *st, double norm)
{
    rl_add_mean(&l->loss, st->loss, l->updates);
    rl_add_mean(&l->kl, st->kl, l->updates);
    rl_add_mean(&l->grad_norm, norm, l->updates);
    l->updates++;
}

/* Adds what the policy's pass measured, weighted by tokens or sequences. */
static void rl_add_looks(struct learned *l, const struct policy_stats *st)
{
    l->entropy += st->entropy * st->n_tokens;
    l->clipped += st->clip_share * st->n_tokens;
    l->tokens += st->n_tokens;
    l->signed_mean += st->signed_mean * st->n_seqs;
    l->mirror += st->mirror * st->n_seqs;
    l->seqs += st->n_seqs;
    for (int i = 0; i < 2; i++) {
        l->masked[i] += st->masked[i];
        l->of_sign[i] += st->of_sign[i];
    }
}

/* One update of the weights from sequences [from, to). */
static int rl_learn_part(struct rl *s, const struct batch *b, size_t from, size_t to, struct learned *l, struct err *e)
{
    struct policy_stats st;
    double norm, lr = schedule_lr(&s->o->schedule, s->step) * schedule_warm(s->updates, s->o->warmup_updates);

    model_zero_grads(s->m);
    if (policy_gradient(s->m, s->ref, &s->pack, b->seqs + from, to - from, &s->o->policy, &st, e) < 0)
        return -1;
    rl_add_looks(l, &st);
    norm = grad_clip(s->m, s->o->grad_clip);
    /* Without any signal an optimiser step would only apply momentum and decay. */
    if (!(norm > 0))
        return 0;
    if (optim_step(s->opt, s->m, lr, e) < 0)
        return -1;
    l->lr = lr;
    s->updates++;
    rl_add_update(l, &st, norm);
    return 0;
}

/* All updates of a batch. */
static int rl_learn(struct rl *s, struct batch *b, struct learned *l, struct err *e)
{
    int parts = s->o->minibatches;

    *l = (struct learned){.lr = schedule_lr(&s->o->schedule, s->step)};
    for (int u = 0; u < parts * s->o->epochs; u++) {
        size_t from = b->cut[u % parts], to = b->cut[u % parts + 1];

        if (from < to && rl_learn_part(s, b, from, to, l, e) < 0)
            return -1;
    }
    return s->o->average > 0 ? average_add(&s->average, s->m, s->step + 1, e) : 0;
}

/* What the sampler says of its tokens gives way to what the training pass says: their kernels round differently. */
static int rl_score_strictly(struct rl *s, struct batch *b, struct err *e)
{
    for (size_t i = 0; i < b->n_seqs; i++)
        b->scored[i] = xcalloc((size_t)b->seqs[i].n, sizeof **b->scored);
    if (policy_logprobs(s->m, &s->pack, b->seqs, b->n_seqs, s->o->temperature, b->scored, &b->mismatch, e) < 0)
        return -1;
    for (size_t i = 0; i < b->n_seqs; i++)
        b->seqs[i].behav = b->scored[i];
    return 0;
}

/* ---- metrics ---- */

struct rl_tally {
    double n, infra, unsupported, cut, full, nll, tokens, reward, n_reward;
    double first_pass, best_pass, first_score, best_score;
    double turn_share[ROLLOUT_MAX_TURNS + 1]; /* [k]: passed in turn k; [0]: never */
    double turns, mixed, repair, repair_pass, n_repair, none, left_out, whole;
};

/* Counts a rollout that has a score. */
static void rl_tally_scored(struct rl_tally *t, const struct rollout *r)
{
    double best = r->turn[0].score;

    for (int k = 1; k < r->turns; k++)
        best = fmax(best, r->turn[k].score);
    t->n_reward++;
    t->first_score += r->turn[0].score;
    t->best_score += best;
    t->first_pass += r->passed_turn == 1;
    t->whole += extract_is_whole(r->turn[0].text, !r->turn[0].cut);
    t->best_pass += r->passed_turn > 0;
    t->turn_share[r->passed_turn]++;
    t->turns += r->turns;
}

/* Counts a rollout. */
static void rl_tally_rollout(struct rl_tally *t, const struct rollout *r)
{
    const struct rollout_turn *first = &r->turn[0];

    t->n++;
    t->infra += rollout_has(r, OUTCOME_INFRA);
    t->unsupported += rollout_has(r, OUTCOME_UNSUPPORTED);
    t->full += r->full;
    t->cut += first->cut;
    t->tokens += first->n;
    for (int i = 0; i < first->n; i++)
        t->nll -= first->logp[i];
    if (rollout_scored(r))
        rl_tally_scored(t, r);
}

/* Counts all of a batch. */
static void rl_tally_batch(const struct rl *s, const struct batch *b, struct rl_tally *t)
{
    for (int i = 0; i < b->n; i++) {
        bool mixed = false;

        for (int k = 0; k < s->o->group; k++) {
            size_t at = (size_t)i * (size_t)s->o->group + (size_t)k;
            const struct rollout *r = &b->g[i].r[k];

            rl_tally_rollout(t, r);
            mixed |= b->adv[at] != 0;
            if (b->valid[at])
                t->reward += b->reward[at];
            if (b->repair[i] && rollout_scored(r)) {
                t->n_repair++;
                t->repair_pass += r->passed_turn > 0;
            }
        }
        t->mixed += mixed;
        t->none += rl_group_failed(&b->g[i]);
        t->left_out += !b->kept[i];
        t->repair += b->repair[i];
    }
}

static double rl_share(double a, double b)
{
    return b > 0 ? a / b : 0;
}

/* What was not measured is no number. */
static double rl_ratio(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

/* A mean that has meaning only where there was an update; else NaN. */
static double rl_made(const struct learned *l, double mean)
{
    return l->updates ? mean : NAN;
}

/* Adds the metrics of several turns. */
static void rl_report_turns(const struct rl *s, const struct rl_tally *t, json_t *line)
{
    char name[32];

    metrics_set(line, "best_pass_rate", rl_share(t->best_pass, t->n_reward));
    metrics_set(line, "best_score", rl_share(t->best_score, t->n_reward));
    metrics_set(line, "turns_mean", rl_share(t->turns, t->n_reward));
    for (int k = 1; k <= s->o->turns; k++) {
        snprintf(name, sizeof name, "passed_turn_%d", k);
        metrics_set(line, name, rl_share(t->turn_share[k], t->n_reward));
    }
}

/* The step's line of metrics, new. */
static json_t *rl_report(struct rl *s, const struct batch *b, const struct learned *l, const struct rl_tally *t)
{
    struct verdicts_counts c = verdicts_counts(s->verdicts);
    const struct { const char *name; double value; } rows[] = {
        {"reward", rl_share(t->reward, t->n_reward)}, {"pass_rate", rl_share(t->first_pass, t->n_reward)},
        {"pass_rate_whole", rl_ratio(t->first_pass, t->whole)},
        {"score", rl_share(t->first_score, t->n_reward)}, {"entropy", rl_share(t->nll, t->tokens)},
        {"entropy_learned", rl_ratio(l->entropy, l->tokens)}, {"grad_norm", rl_made(l, l->grad_norm)},
        {"loss", rl_made(l, l->loss)}, {"lr", l->lr},
        {"kl", rl_made(l, l->kl)}, {"response_length", rl_share(t->tokens, t->n)},
        {"length_clip_ratio", rl_share(t->cut, t->n)}, {"clip_ratio", rl_ratio(l->clipped, l->tokens)},
        {"off_policy_signed", rl_ratio(l->signed_mean, l->seqs)}, {"off_policy_mirror", rl_ratio(l->mirror, l->seqs)},
        {"masked_share", rl_ratio(l->masked[0] + l->masked[1], l->seqs)},
        {"masked_share_negative", rl_ratio(l->masked[0], l->of_sign[0])},
        {"masked_share_positive", rl_ratio(l->masked[1], l->of_sign[1])}, {"infra", t->infra},
        {"unsupported", t->unsupported}, {"updates", l->updates}, {"sequences_learned", l->seqs},
        {"tokens_learned", l->tokens}, {"dialogues_full", t->full}, {"prompts_too_long", b->too_long},
        {"repairs_dropped", b->dropped}, {"prompts_asleep", asker_sleeping(&s->asker)},
        {"groups_mixed", t->mixed}, {"groups_failed", t->none}, {"groups_skipped", b->skipped},
        {"groups_left_out", t->left_out}, {"repair_groups", t->repair},
        {"repair_pass_rate", rl_share(t->repair_pass, t->n_repair)},
        {"bdr_open", bdr_open(&s->bdr, s->o->bdr_min_pass)},
        {"staleness", b->policy < 0 ? NAN : (double)(b->step - b->policy)}, {"sampling_s", b->times.sampling},
        {"judging_s", b->times.judging}, {"learning_s", b->learning},
        {"bdr_size", (double)s->bdr.n}, {"verdicts_replayed", rl_share((double)c.replayed, (double)c.submitted)},
    };
    json_t *line = metrics_line(&s->metrics, s->step);

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        metrics_set(line, rows[i].name, rows[i].value);
    if (s->o->strict) {
        metrics_set(line, "logprob_mismatch_tokens", b->mismatch.differ);
        metrics_set(line, "logprob_mismatch_mean", b->mismatch.mean);
        metrics_set(line, "logprob_mismatch_worst", b->mismatch.worst);
    }
    rl_report_turns(s, t, line);
    return line;
}

/* ---- the loop ---- */

/* Writes a checkpoint with all that a continuation needs. */
static int rl_save(struct rl *s, struct err *e)
{
    json_t *state = json_pack("{s:I,s:I,s:f,s:I,s:o,s:o}", "step", (json_int_t)s->step, "sampled",
                              (json_int_t)s->sampled, "seconds", metrics_seconds(&s->metrics), "updates",
                              (json_int_t)s->updates, "prompts", asker_save(&s->asker), "bdr", bdr_save(&s->bdr));
    int rc = s->o->average > 0 ? average_save(&s->average, s->o->out, s->step, e) : 0;

    if (rc == 0)
        rc = checkpoint_save(s->o->out, s->step, s->m, s->opt, state, e);
    if (rc == 0 && s->o->average > 0)
        average_tidy(s->o->out, s->step);

    json_decref(state);
    return rc;
}

/* The minibatch that the sequence belongs to. */
static int rl_part_of(const struct rl *s, const struct batch *b, size_t seq)
{
    int part = 0;

    while (part + 1 < s->o->minibatches && seq >= b->cut[part + 1])
        part++;
    return part;
}

/* Sequences are in the order of groups and samples, without those that are not valid or whose group is skipped. */
static int rl_log_rollouts(const struct rl *s, const struct batch *b, struct err *e)
{
    struct buf lines;
    size_t seq = 0;
    int rc;

    buf_init(&lines, (size_t)1 << 32);
    for (int i = 0; i < b->n; i++)
        for (int k = 0; k < s->o->group; k++) {
            size_t at = (size_t)i * (size_t)s->o->group + (size_t)k;
            bool in = seq < b->n_seqs && b->group_of[seq] == i && b->valid[at];
            struct rollout_note n = {b->step, b->policy, b->item[i]->id, b->repair[i], k,
                                     in ? rl_part_of(s, b, seq) : -1, in ? b->reward[at] : NAN, in ? b->adv[at] : NAN};

            rollout_log_line(&lines, &n, k == 0 ? &b->g[i].prompt : NULL, &b->g[i].r[k]);
            seq += in;
        }
    rc = rollout_log_write(s->o->out, b->step, &lines, e);
    buf_free(&lines);
    return rc;
}

/* Rollouts, verdicts, rewards and advantages of a batch that is open. */
static int rl_batch_play(struct rl *s, struct batch *b, struct err *e)
{
    struct rollout_options ro = {.turns = s->o->turns, .max_new = s->o->max_new, .temperature = s->o->temperature,
                                 .top_p = s->o->top_p,
                                 .positions = s->m->config.max_positions, .style = s->o->style, .edits = s->o->edits,
                                 .reward = reward_is_default(s->o->reward) ? NULL : &s->o->reward,
                                 .times = &b->times};

    verdicts_step(s->verdicts, b->step);
    if (rollout_run(s->rollout_engine, s->tok, s->verdicts, &ro, b->g, b->n, e) < 0 || rl_score_batch(s, b, e) < 0)
        return -1;
    return s->o->rollouts ? rl_log_rollouts(s, b, e) : 0;
}

/* ---- batches ahead: with staleness k, step n learns while a thread draws the batch of step n + k ---- */

struct rl_flight {
    struct rl *s;
    struct batch b;
    pthread_t thread;
    bool flies;
    int rc;
    struct err e;
};

/* A thread that plays a later batch while we learn. */
static void *rl_take_off_async(void *arg)
{
    struct rl_flight *f = arg;

    f->rc = rl_batch_play(f->s, &f->b, &f->e);
    return NULL;
}

/* Keeps a batch that was sampled before its step. */
static void rl_keep_ahead(struct rl *s, const struct batch *b)
{
    s->ahead[b->step - s->step] = *b;
    s->sampled = b->step + 1;
}

/* The step up to which batches may be sampled now. */
static int64_t rl_ahead_until(const struct rl *s)
{
    return s->step + s->o->staleness < s->o->steps ? s->step + s->o->staleness : s->o->steps;
}

/* At the start, and where a run goes on with more steps: batches that no step before this one has drawn. */
static int rl_draw_first(struct rl *s, struct err *e)
{
    int rc = 0;

    while (rc == 0 && s->sampled < rl_ahead_until(s)) {
        struct batch b;
        rc = rl_batch_open(s, &b, s->sampled, e);
        if (rc == 0)
            rc = rl_batch_play(s, &b, e);
        if (rc == 0)
            rl_keep_ahead(s, &b);
        else
            rl_batch_free(&b);
    }
    return rc;
}

/* The oldest batch that was played ahead; the caller owns it. */
static struct batch rl_take_ahead(struct rl *s)
{
    struct batch b = s->ahead[0];

    memmove(s->ahead, s->ahead + 1, (size_t)s->o->staleness * sizeof *s->ahead); /* one more is there, and empty */
    return b;
}

/* The retry buffer and the order of prompts belong to the thread that learns: the batch is opened before it leaves. */
static int rl_take_off(struct rl *s, struct rl_flight *f, struct err *e)
{
    *f = (struct rl_flight){.s = s};
    if (s->step + s->o->staleness >= s->o->steps)
        return 0;
    if (rl_batch_open(s, &f->b, s->step + s->o->staleness, e) < 0) {
        rl_batch_free(&f->b);
        return -1;
    }
    f->flies = pthread_create(&f->thread, NULL, rl_take_off_async, f) == 0;
    if (!f->flies)
        rl_batch_free(&f->b);
    return f->flies ? 0 : err_set(e, ERR_ENV, "cannot start a thread");
}

/* Answers are drawn by the weights as they are now from here on; sets s->policy. No thread may be drawing meanwhile. */
static int rl_renew(struct rl *s, struct err *e)
{
    if (rollout_engine_follows(s->rollout_engine))
        s->policy = s->step;
    return rollout_engine_renew(s->rollout_engine, e);
}

/* Waits; keep: the step has been learned, so the batch joins those ahead and the rollout engine gets the new
 * weights. */
static int rl_touch_down(struct rl *s, struct rl_flight *f, bool keep, struct err *e)
{
    if (f->flies)
        pthread_join(f->thread, NULL);
    if (f->flies && (!keep || f->rc < 0))
        rl_batch_free(&f->b);
    if (!keep)
        return -1;
    if (f->rc < 0)
        return err_set(e, f->e.kind, "%s", f->e.msg);
    if (f->flies)
        rl_keep_ahead(s, &f->b);
    return rl_renew(s, e);
}

/* ---- a step ---- */

/* Learns a batch, with log-probabilities scored anew where that is wanted. */
static int rl_learn_step(struct rl *s, struct batch *b, struct learned *l, struct err *e)
{
    double start = now_s();

    if ((s->o->strict && rl_score_strictly(s, b, e) < 0) || rl_learn(s, b, l, e) < 0)
        return -1;
    b->learning = now_s() - start;
    rl_feed_buffer(s, b);
    s->step++;
    return 0;
}

/* Writes the step's metrics and rollouts and moves the bar. */
static int rl_tell_step(struct rl *s, const struct batch *b, const struct learned *l, struct progress *bar,
                        struct err *e)
{
    struct rl_tally t = {0};

    rl_tally_batch(s, b, &t);
    progress_note(bar, "reward %.2f pass %.0f%% best %.0f%%", rl_share(t.reward, t.n_reward),
                  100 * rl_share(t.first_pass, t.n_reward), 100 * rl_share(t.best_pass, t.n_reward));
    return metrics_write(&s->metrics, rl_report(s, b, l, &t), e);
}

/* A step on rollouts of the current policy. */
static int rl_fresh_step(struct rl *s, struct progress *bar, struct err *e)
{
    struct batch b;
    struct learned l;
    int rc = rl_batch_open(s, &b, s->step, e);

    if (rc == 0)
        rc = rl_batch_play(s, &b, e);
    if (rc == 0)
        rc = rl_learn_step(s, &b, &l, e);
    if (rc == 0)
        rc = rl_tell_step(s, &b, &l, bar, e);
    if (rc == 0)
        rc = rl_renew(s, e);
    s->sampled = s->step;
    rl_batch_free(&b);
    return rc;
}

/* A step on rollouts that were drawn during the one before. */
static int rl_stale_step(struct rl *s, struct progress *bar, struct err *e)
{
    struct rl_flight f;
    struct batch b;
    struct learned l;
    int rc;

    if (rl_draw_first(s, e) < 0 || rl_take_off(s, &f, e) < 0)
        return -1;
    b = rl_take_ahead(s);
    rc = rl_learn_step(s, &b, &l, e);
    rc = rl_touch_down(s, &f, rc == 0, e);
    if (rc == 0)
        rc = rl_tell_step(s, &b, &l, bar, e);
    rl_batch_free(&b);
    return rc;
}

/* Ctrl-C: without batches ahead the unfinished step never happened, and a checkpoint is written. With them the weights
 * may have moved already: the run goes on from the checkpoint that there is, as after kill -9. 'whole': no step is
 * unfinished, so nothing is taken back. */
static int rl_stopped(struct rl *s, const json_t *buffer, int64_t drawn, bool whole, struct err *e)
{
    if (s->o->staleness && !whole)
        return err_set(e, ERR_STOP, "stopped; run again to continue from the last checkpoint");
    if (!whole)
        s->asker.drawn = drawn;
    if ((whole || bdr_load(&s->bdr, buffer, e) == 0) && rl_save(s, e) == 0)
        err_set(e, ERR_STOP, "stopped at step %lld; run again to continue", (long long)s->step);
    return -1;
}

/* Steps until the last one or a stop; a broken step is undone. */
static int rl_loop(struct rl *s, struct err *e)
{
    struct progress bar;
    int rc = 0;

    progress_start(&bar, s->o->stage, (uint64_t)s->step, (uint64_t)s->o->steps);
    while (s->step < s->o->steps && rc == 0) {
        json_t *buffer = bdr_save(&s->bdr);
        int64_t drawn = s->asker.drawn, step = s->step;
        bool between = stop_requested();

        if (between)
            rc = err_set(e, ERR_STOP, "stopped");
        else
            rc = s->o->staleness ? rl_stale_step(s, &bar, e) : rl_fresh_step(s, &bar, e);
        if (rc < 0 && e->kind == ERR_STOP)
            rc = rl_stopped(s, buffer, drawn, between || (!s->o->staleness && s->step > step), e);
        json_decref(buffer);
        if (rc == 0 && s->step % s->o->save_every == 0 && s->step < s->o->steps)
            rc = rl_save(s, e);
        progress_at(&bar, (uint64_t)s->step);
    }
    progress_end(&bar);
    return rc;
}

/* ---- the way back into a run ---- */

struct rl_reader {
    struct rl *s;
    struct batch *b;
};

/* A callback of jsonl_each: takes a rollout of an interrupted step. */
static int rl_take_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    struct rl_reader *r = ctx;
    struct rl *s = r->s;
    struct batch *b = r->b;
    int k = (int)json_i64(v, "sample", -1);
    const json_t *prompt = json_object_get(v, "prompt_tokens");

    b->policy = json_i64(v, "policy", -1);
    if (prompt && b->n < rl_groups_drawn(s->o)) {
        struct ivec ids = {0};
        for (size_t i = 0; i < json_array_size(prompt); i++)
            ivec_push(&ids, (int32_t)json_integer_value(json_array_get(prompt, i)));
        int rc = rollout_group_ids(&b->g[b->n], s->tok, ids.v, ids.n, s->o->group, e);
        ivec_free(&ids);
        if (rc < 0)
            return -1;
        b->repair[b->n] = json_is_true(json_object_get(v, "repair"));
        if (!(b->item[b->n++] = prompt_set_find(&s->prompts, json_str(v, "prompt_id", ""))))
            return err_set(e, ERR_INPUT, "line %zu: no prompt has that name", line);
    }
    if (!b->n || k < 0 || k >= s->o->group)
        return err_set(e, ERR_INPUT, "line %zu: no rollout of this run", line);
    return rollout_log_take(v, s->tok, &b->g[b->n - 1].r[k], e);
}

/* What a checkpoint had drawn ahead is in its rollouts. */
static int rl_read_ahead(struct rl *s, struct err *e)
{
    int64_t until = s->sampled;

    for (s->sampled = s->step; s->sampled < until;) {
        struct batch b;
        struct rl_reader r = {s, &b};
        char *path = rollout_log_path(s->o->out, s->sampled);

        rl_batch_make(s, &b, s->sampled);
        int rc = jsonl_each(path, rl_take_line, &r, e);
        if (rc == 0 && b.n < rl_groups_drawn(s->o))
            rc = err_set(e, ERR_INPUT, "it ends early");
        if (rc == 0)
            rc = rl_score_batch(s, &b, e);
        if (rc < 0) {
            rl_batch_free(&b);
            err_prefix(e, "'%s', which this run continues from", path);
        } else {
            rl_keep_ahead(s, &b);
        }
        free(path);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* Continues from a checkpoint's folder. */
static int rl_restore(struct rl *s, const char *folder, struct err *e)
{
    json_t *state;
    int rc;

    if (checkpoint_load(folder, s->opt, &state, e) < 0)
        return -1;
    s->step = json_i64(state, "step", 0);
    s->spent = json_f64(state, "seconds", 0);
    s->updates = json_i64(state, "updates", 0);
    asker_load(&s->asker, json_object_get(state, "prompts"));
    s->sampled = json_i64(state, "sampled", s->step);
    rc = bdr_load(&s->bdr, json_object_get(state, "bdr"), e);
    json_decref(state);
    if (rc == 0 && s->o->average > 0)
        rc = average_load(&s->average, s->o->out, s->step, e);
    log_info("%s: continuing at step %lld of %lld", s->o->stage, (long long)s->step, (long long)s->o->steps);
    return rc == 0 ? rl_read_ahead(s, e) : rc;
}

/* Loads the policy, the optimiser and the reference. */
static int rl_open_model(struct rl *s, const char *folder, struct err *e)
{
    const struct rl_options *o = s->o;
    struct adamw_options ao = {.beta2 = o->beta2, .eps = o->eps, .weight_decay = o->weight_decay};
    struct train_limits lim = {.max_tokens = o->micro_tokens};

    if (!(s->m = checkpoint_model(folder, o->model, e)) ||
        model_use_tokenizer(s->m, s->tok, e) < 0 ||
        model_to_device(s->m, o->device ? o->device : "cpu", o->dtype, e) < 0 || model_train_begin(s->m, &lim, e) < 0)
        return -1;
    if (o->policy.kl != KL_NONE && o->policy.kl_coef != 0)
        if (!(s->ref = model_load(o->model, e)) ||
            model_to_device(s->ref, o->device ? o->device : "cpu", o->dtype, e) < 0 ||
            model_train_begin(s->ref, &lim, e) < 0)
            return -1;
    s->room = rollout_room(s->m->config.max_positions, o->max_new);
    if (o->max_prompt < s->room)
        s->room = o->max_prompt;
    s->opt = optim_new(s->m, &ao);
    average_init(&s->average, s->m, o->steps / 2 + 1);
    if (!folder && o->moments)
        return checkpoint_moments(o->model, s->opt, e);
    return folder ? rl_restore(s, folder, e) : 0;
}

/* The checkpoint's weights are those that draw next. */
static int rl_open_rollout_engine(struct rl *s, struct err *e)
{
    const struct rl_options *o = s->o;
    char *cwd = *o->out == '/' ? NULL : getcwd(NULL, 0), *out = cwd ? path_join(cwd, o->out) : xstrdup(o->out);
    char *folder = path_join(out, "weights"); /* a server has a folder of its own */
    struct rollout_engine_config c = {.engine = o->engine, .learner = s->m, .apart = o->staleness > 0,
                                      .device = o->device,
                                      .dtype = o->dtype, .url = o->url, .model = o->url_model, .parallel = o->parallel,
                                      .sync = o->sync, .folder = folder};
    int rc = rollout_engine_open(&c, &s->rollout_engine, e);

    s->policy = rc == 0 && rollout_engine_follows(s->rollout_engine) ? s->step : -1;
    free(cwd);
    free(out);
    free(folder);
    return rc;
}

static const char *const may_change[] = {"metrics", "save-every", "workers", "jobs", "out", "device", "dtype",
                                         "rollout-url", "rollout-parallel", NULL};

/* Saves the policy, or its average. */
static int rl_save_model(const struct rl *s, struct err *e)
{
    struct model *mean;
    int rc;

    if (!(s->o->average > 0))
        return run_save_model(s->o->out, s->m, e);
    if (!(mean = average_model(&s->average, s->o->model, s->o->average, e)))
        return -1;
    rc = model_use_tokenizer(mean, s->tok, e) < 0 ? -1 : run_save_model(s->o->out, mean, e);
    model_free(mean);
    return rc;
}

/* Opens everything, continues where a run was left, and loops. */
static int rl_do_run(struct rl *s, struct err *e)
{
    const struct rl_options *o = s->o;
    char *folder = NULL;
    char *log = path_join(o->out, "verdicts.jsonl");
    struct verdicts_config vc = {.service = {.workers = o->workers, .jobs = o->jobs}, .log = log,
                                 .options = o->verdict};
    int rc = -1;

    if (checkpoint_resume(o->out, &folder, e) < 0 || !(s->tok = tokenizer_load(o->model, e)) ||
        prompt_set_load(&s->prompts, o->data, e) < 0)
        goto out;
    asker_init(&s->asker, &s->prompts, o->seed, o->sleep);
    if (o->asked && *o->asked && asker_note_file(&s->asker, o->asked, e) < 0) /* a checkpoint's state takes its place */
        goto out;
    s->ahead = xcalloc((size_t)o->staleness + 1, sizeof *s->ahead);
    if (rl_open_model(s, folder, e) < 0 || rl_open_rollout_engine(s, e) < 0 ||
        (s->folder.claim && run_claim(&s->folder, e) < 0) ||
        dir_make(o->out, e) < 0 || verdicts_open(&vc, &s->verdicts, e) < 0 ||
        metrics_open(&s->metrics, o->out, o->metrics, o->stage, s->step + 1, s->spent, e) < 0)
        goto out;
    rc = rl_loop(s, e);
    if (rc == 0) /* before the model: where that is, its moments are */
        rc = rl_save(s, e);
    if (rc == 0)
        rc = rl_save_model(s, e);
out:
    free(folder);
    free(log);
    return rc;
}

int rl_check(const struct rl_options *o, struct err *e)
{
    if (o->steps < 1 || o->prompts < 1 || o->save_every < 1 || o->minibatches < 1 || o->epochs < 1 || o->max_new < 1)
        return err_set(e, ERR_INPUT, "steps, prompts, save-every, minibatches, epochs and max-new want at least 1");
    if (o->group < 2)
        return err_set(e, ERR_INPUT, "a group of %d has no advantage; group wants at least 2", o->group);
    if (o->turns < 1 || o->turns > ROLLOUT_MAX_TURNS)
        return err_set(e, ERR_INPUT, "turns wants 1 to %d", ROLLOUT_MAX_TURNS);
    if (!(o->temperature > 0))
        return err_set(e, ERR_INPUT, "temperature wants more than 0: greedy samples of a group are all the same");
    if (!(o->top_p >= 0 && o->top_p <= 1))
        return err_set(e, ERR_INPUT, "top-p wants 0 to 1; 0 means 1: all ids");
    if (o->top_p > 0 && o->top_p < 1 && o->engine && strcmp(o->engine, "own"))
        return err_set(e, ERR_INPUT, "top-p %g needs rollout-engine own: servers do not say which ids they kept",
                       o->top_p);
    if (o->group > ROLLOUT_MAX_GROUP)
        return err_set(e, ERR_INPUT, "group wants at most %d", ROLLOUT_MAX_GROUP);
    if (!(o->oversample == 0 || (o->oversample >= 1 && o->oversample <= 10)))
        return err_set(e, ERR_INPUT, "oversample wants 1 to 10: groups drawn for each that is learned from");
    if (!(o->negative_weight >= 0 && o->negative_weight <= 1) || !(o->average >= 0 && o->average < 1))
        return err_set(e, ERR_INPUT, "negative-weight wants 0 to 1; average is the start's share, 0 (off) to below 1");
    if (o->staleness < 0 || o->staleness > RL_MAX_STALENESS)
        return err_set(e, ERR_INPUT, "staleness wants 0 to %d", RL_MAX_STALENESS);
    if (o->staleness && !o->rollouts)
        return err_set(e, ERR_INPUT, "staleness %d needs rollouts: a run continues from what they hold", o->staleness);
    if (o->staleness && o->strict)
        return err_set(e, ERR_INPUT, "logprobs strict needs staleness 0: the weights that drew a batch are gone when "
                                     "it is learned from");
    if (o->micro_tokens < o->max_prompt + o->max_new)
        return err_set(e, ERR_INPUT, "micro-tokens (%d) must hold max-prompt + max-new (%d)", o->micro_tokens,
                       o->max_prompt + o->max_new);
    return 0;
}

int rl_run(const struct rl_options *o, struct err *e)
{
    struct rl_options own = *o;
    struct rl s = {.o = &own};
    int rc;

    own.schedule.steps = o->steps;
    own.policy.temperature = o->temperature;
    own.policy.norm = o->max_new;
    own.seed ^= hash64(o->stage, strlen(o->stage), 0); /* two stages of one recipe see other prompts and samples */
    if (rl_check(o, e) < 0 || (o->claim && run_open(o->out, o->claim, may_change, &s.folder, e) < 0))
        return -1;
    bdr_init(&s.bdr, (size_t)(o->bdr_size > 0 ? o->bdr_size : 0));
    pack_init(&s.pack, o->micro_tokens);
    rc = rl_do_run(&s, e);
    pack_free(&s.pack);
    bdr_free(&s.bdr);
    if (s.metrics.path)
        metrics_close(&s.metrics);
    verdicts_close(s.verdicts);
    for (int64_t i = s.step; s.ahead && i < s.sampled; i++)
        rl_batch_free(&s.ahead[i - s.step]);
    free(s.ahead);
    if (s.opt)
        optim_free(s.opt);
    rollout_engine_close(s.rollout_engine);
    if (s.m)
        model_free(s.m);
    if (s.ref)
        model_free(s.ref);
    tokenizer_free(s.tok);
    prompt_set_free(&s.prompts);
    asker_free(&s.asker);
    average_free(&s.average);
    run_close(&s.folder);
    return rc;
}
