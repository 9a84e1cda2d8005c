/* rl.h - GRPO with MooreEval as the reward: single-turn, or multi-turn with feedback.
 *
 * A step: draw prompts (a few of them repair tasks from the retry buffer) -> groups of rollouts -> verdicts -> rewards
 * (PrimeEcho when there are several turns) -> group-relative advantages -> policy-gradient step(s) on the first
 * responses -> metrics. Prompts, seeds and buffer draws depend on the seed and the step only; with the verdict log in
 * the run folder a resumed run repeats the same bits. */
#ifndef MC_TRAIN_RL_H
#define MC_TRAIN_RL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "answers/rollout_engine.h"
#include "base/err.h"
#include "task/prompt.h"
#include "objective/advantage.h"
#include "train/policy.h"
#include "objective/primeecho.h"
#include "objective/reward.h"
#include "train/lr_schedule.h"

#define RL_MAX_STALENESS 16

struct rl_options {
    const char *model, *data, *out, *metrics, *stage; /* data: prompts.jsonl; the others as in sft.h */
    const json_t *claim;
    int64_t steps, save_every;
    int prompts, group;          /* prompts a step, samples of each */
    int turns, max_new, max_prompt, micro_tokens;
    int minibatches, epochs;     /* optimiser steps a rollout batch: minibatches x epochs */
    double temperature, top_p;   /* top_p: 0 means 1; below 1 the kept sets are replayed in training */
    double oversample;           /* groups drawn for each that is learned from, mixed ones first; 0: 1 */
    bool sleep;                  /* asker.h */
    const char *asked;           /* groups.jsonl of rft.h: how often each prompt passed before step 1; "": none */
    struct lr_schedule schedule; /* by rl step; .steps is set from steps */
    int64_t warmup_updates;      /* optimiser updates with rising rate: a step has several */
    double weight_decay, grad_clip;
    double beta2, eps;           /* of AdamW; 0: 0.999, 1e-8 */
    bool moments;                /* AdamW's moments begin as those that the model was trained with */
    double average;              /* above 0: the model saved is average.h's, with this share of the start, over the last
                                  * half of the steps */
    double negative_weight;      /* factor of advantages below 0 */
    bool permute_rewards;        /* within each group: the control that must not help */
    struct reward_params reward; /* zeros: the weights that the judge scored with */
    enum advantage_kind advantage;
    double advantage_eps;
    struct policy_options policy;
    bool primeecho;
    struct primeecho echo;
    const char *engine;          /* rollout_engine.h: NULL, "own" or "openai", and what that needs */
    const char *url, *url_model;
    int parallel;
    enum rollout_engine_sync sync;
    int staleness;               /* batches that are drawn ahead: step n's by the weights before step n - staleness */
    bool rollouts;               /* keep out/rollouts/STEP.jsonl (rollout_log.h) */
    /* behaviour log-probs by the training pass; differences to the sampler's are counted */
    bool strict;
    int bdr_size;                /* 0: off */
    double bdr_probability;
    double bdr_min_pass;         /* BDR is asked less while its repairs pass less often: bdr.h */
    enum prompt_style style;
    /* feedback shows the kernel's numbered lines, and answers may be lines (task/repair_text.h) */
    bool edits;
    const json_t *verdict;       /* eval's flags; NULL: defaults */
    int workers, jobs;
    uint64_t seed;
    const char *device, *dtype; /* of model_to_device; NULL: the host */
};

/* ERR_INPUT for options that rl_run would refuse, without reading a file. */
int rl_check(const struct rl_options *o, struct err *e);
int rl_run(const struct rl_options *o, struct err *e);

#endif
