/* cmd_rl.c - 'musacoder rl': options to train/rl.h. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/reward_rows.h"
#include "cli/secret.h"
#include "eval/build/judge_backend.h"
#include "eval/eval.h"
#include "nn/model.h"
#include "train/rl.h"
#include "verdicts/verdicts.h"

static const struct opt rows[] = {
    {"rl", "model", OPT_PATHS, NULL, "model folder to start from (with tokenizer.json)",
     INTO(struct rl_options, model)},
    {"rl", "prompts", OPT_PATHS, NULL, "prompts.jsonl of 'musacoder synth' (verl/TRL columns)",
     INTO(struct rl_options, data)},
    {"rl", "out", OPT_OUT_FOLDER, NULL, "run folder; a stopped run continues from it", INTO(struct rl_options, out)},
    {"rl", "metrics", OPT_OUT_FOLDER, NULL, "folder of metrics.jsonl (default: the run folder)",
     INTO(struct rl_options, metrics)},
    {"rl", "stage", OPT_STR, "rl", "name of this stage in metrics.jsonl", INTO(struct rl_options, stage)},
    {"rl", "turns", OPT_INT, "1", "responses at most; after a failure MooreEval's feedback is the next request",
     INTO(struct rl_options, turns)},
    {"rl", "steps", OPT_INT, "100", "rollout batches", INTO(struct rl_options, steps)},
    {"rl", "batch-prompts", OPT_INT, "64", "prompts of a step", INTO(struct rl_options, prompts)},
    {"rl", "group", OPT_INT, "8", "samples of each prompt", INTO(struct rl_options, group)},
    {"rl", "oversample", OPT_REAL, "1",
     "from 1: groups drawn for each that is learned from; those of mixed rewards come first",
     INTO(struct rl_options, oversample)},
    {"rl", "sleep", OPT_BOOL, "false",
     "a prompt whose group passed or failed whole sleeps until twice as many are asked as there are",
     INTO(struct rl_options, sleep)},
    {"rl", "asked", OPT_PATHS, NULL,
     "RUN/groups.jsonl of rft: what all of its samples solved, or none, sleeps from the start",
     INTO(struct rl_options, asked)},
    {"rl", "temperature", OPT_REAL, "0.9", "from 0: sampling temperature; the trainer divides logits by it too",
     INTO(struct rl_options, temperature)},
    {"rl", "top-p", OPT_REAL, "1", "0 to 1: below 1: draw from the likeliest ids; training's softmax runs over the "
                                   "same", INTO(struct rl_options, top_p)},
    {"rl", "max-new", OPT_INT, "512", "longest response (tokens); 0: what the model's folder says"},
    {"rl", "max-prompt", OPT_INT, "2048", "longest prompt, repair dialogues included (tokens)",
     INTO(struct rl_options, max_prompt)},
    {"rl", "micro-tokens", OPT_INT, "4096", "tokens forwarded together", INTO(struct rl_options, micro_tokens)},
    {"rl", "minibatches", OPT_INT, "1", "optimiser steps that share a rollout batch",
     INTO(struct rl_options, minibatches)},
    {"rl", "epochs", OPT_INT, "1", "passes over a rollout batch", INTO(struct rl_options, epochs)},
    {"rl", "lr", OPT_REAL, "1e-6", "peak learning rate", INTO(struct rl_options, schedule.peak)},
    {"rl", "warmup-updates", OPT_INT, "4", "optimiser updates with rising rate (a step makes minibatches x epochs)",
     INTO(struct rl_options, warmup_updates)},
    {"rl", "schedule", OPT_CHOICE, "constant", "constant|linear|cosine: shape after warm-up"},
    {"rl", "lr-floor", OPT_REAL, "0.1", "0 to 1: final rate as a share of the peak",
     INTO(struct rl_options, schedule.floor)},
    {"rl", "weight-decay", OPT_REAL, "0.1", "AdamW's weight decay", INTO(struct rl_options, weight_decay)},
    {"rl", "beta2", OPT_REAL, "0.999", "AdamW's decay of the second moment", INTO(struct rl_options, beta2)},
    {"rl", "eps", OPT_REAL, "1e-8", "AdamW's epsilon", INTO(struct rl_options, eps)},
    {"rl", "moments", OPT_BOOL, "false",
     "begin with the moments that the model was trained with (RUN/model of a run here)",
     INTO(struct rl_options, moments)},
    {"rl", "average", OPT_REAL, "0",
     "0 to 1: above 0: save this share of the starting model and the rest of the mean over the last half of the steps",
     INTO(struct rl_options, average)},
    {"rl", "grad-clip", OPT_REAL, "0.5", "from 0: largest gradient norm; 0: no limit",
     INTO(struct rl_options, grad_clip)},
    {"rl", "advantage", OPT_CHOICE, "grpo", "grpo|rloo|dr_grpo: group-relative estimator"},
    {"rl", "advantage-eps", OPT_REAL, "1e-6", "added to the group's standard deviation",
     INTO(struct rl_options, advantage_eps)},
    {"rl", "negative-weight", OPT_REAL, "1", "factor of advantages below 0", INTO(struct rl_options, negative_weight)},
    {"rl", "permute-rewards", OPT_BOOL, "false", "a control: rewards of a group go to other samples of it",
     INTO(struct rl_options, permute_rewards)},
    REWARD_ROWS("rl"),
    {"rl", "eps-low", OPT_REAL, "0.2", "0 to 1: lower bound of the ratio: 1 - eps-low",
     INTO(struct rl_options, policy.clip.eps_low)},
    {"rl", "eps-high", OPT_REAL, "0.28", "upper bound of the ratio: 1 + eps-high",
     INTO(struct rl_options, policy.clip.eps_high)},
    {"rl", "aggregate", OPT_CHOICE, "token_mean",
     "token_mean|seq_mean_token_mean|seq_mean_token_sum|seq_mean_token_sum_norm: loss aggregation"},
    {"rl", "after-mask", OPT_BOOL, "false", "count what is left after masking, instead of all tokens",
     INTO(struct rl_options, policy.after_mask)},
    {"rl", "kl", OPT_CHOICE, "k3", "none|k2|k3: estimator of KL to the starting model"},
    {"rl", "kl-coef", OPT_REAL, "0", "weight of the KL term", INTO(struct rl_options, policy.kl_coef)},
    {"rl", "entropy-coef", OPT_REAL, "0", "weight of the entropy bonus", INTO(struct rl_options, policy.entropy_coef)},
    {"rl", "loss-terms", OPT_STR, NULL, "further terms of the loss: NAME=WEIGHT,.., such as "
                                        "positive, -log pi of the answers above their group's mean; a wrong name "
                                        "lists all"},
    {"rl", "primeecho", OPT_BOOL, "true", "several turns: reward first and best turn (else the first turn alone)",
     INTO(struct rl_options, primeecho)},
    {"rl", "alpha", OPT_REAL, "0.75", "PrimeEcho: weight of the first turn", INTO(struct rl_options, echo.alpha)},
    {"rl", "bonus-first", OPT_REAL, "0.15", "PrimeEcho: bonus for passing in turn 1",
     INTO(struct rl_options, echo.bonus1)},
    {"rl", "bonus-second", OPT_REAL, "0.08", "PrimeEcho: bonus for passing in turn 2",
     INTO(struct rl_options, echo.bonus2)},
    {"rl", "bdr", OPT_BOOL, "true", "Buffered Dynamic Retry: failed groups come back as repair tasks"},
    {"rl", "bdr-size", OPT_INT, "256", "entries of the retry buffer", INTO(struct rl_options, bdr_size)},
    {"rl", "bdr-probability", OPT_REAL, "0.1", "0 to 1: chance that a prompt is taken from the retry buffer",
     INTO(struct rl_options, bdr_probability)},
    {"rl", "bdr-min-pass", OPT_REAL, "0.03",
     "0 to 1: the buffer is asked an eighth as often while fewer of its last repairs pass; 0: always as often",
     INTO(struct rl_options, bdr_min_pass)},
    {"rl", "mirrorpop", OPT_BOOL, "true", "leave out responses that are too far off policy",
     INTO(struct rl_options, policy.mirrorpop)},
    {"rl", "delta", OPT_REAL, "0.02", "MirrorPop: largest mean |log ratio|", INTO(struct rl_options, policy.delta)},
    {"rl", "logprobs", OPT_CHOICE, "fast", "fast|strict: behaviour log-probs of the sampler, or the training pass"},
    {"rl", "rollout-engine", OPT_CHOICE, "own",
     "own|openai: this process, or a server that returns token ids and log-probs", INTO(struct rl_options, engine)},
    {"rl", "rollout-url", OPT_STR, NULL, "openai: http://HOST:PORT/v1 of vLLM (--logprobs-mode processed_logprobs), "
                                         "SGLang, 'musacoder serve --model'", INTO(struct rl_options, url)},
    {"rl", "rollout-model", OPT_STR, NULL, "openai: the model as the server calls it (default: its first)",
     INTO(struct rl_options, url_model)},
    {"rl", "rollout-parallel", OPT_INT, "64", "openai: requests at a time", INTO(struct rl_options, parallel)},
    {"rl", "rollout-sync", OPT_CHOICE, "none",
     "none|disk: openai: after each step save weights to RUN/weights and POST /update_weights_from_disk"},
    {"rl", "staleness", OPT_INT, "0",
     "batches drawn ahead: the next is sampled and judged while this one is learned from",
     INTO(struct rl_options, staleness)},
    {"rl", "edits", OPT_BOOL, "false",
     "what failed is shown with numbered lines, and the answer may be the lines that change",
     INTO(struct rl_options, edits)},
    {"rl", "style", OPT_CHOICE, "plain", "plain|full: wording of the feedback"},
    {"rl", "dialect", OPT_CHOICE, NULL, "cuda|musa: what answers must be written in (default: either)"},
    {"rl", "backend", OPT_CHOICE, NULL, BACKEND_WORDS ": where candidates run (default: the judge's)"},
    {"rl", "protocol", OPT_CHOICE, NULL,
     "strict|strict-torch|kernelbench: rules of the verdict (default: the judge's)"},
    {"rl", "trials", OPT_INT, NULL, "trials of each verdict (default: the judge's)"},
    {"rl", "timeout", OPT_REAL, NULL, "seconds a candidate may run (default: the judge's)"},
    {"rl", "workers", OPT_INT, "1", "verifier processes", INTO(struct rl_options, workers)},
    {"rl", "jobs", OPT_INT, "0", "candidates judged at once by each (0: 1.5 for each CPU)",
     INTO(struct rl_options, jobs)},
    {"rl", "rollouts", OPT_BOOL, "true", "keep RUN/rollouts/STEP.jsonl: tokens, log-probs and verdict of every turn",
     INTO(struct rl_options, rollouts)},
    {"rl", "save-every", OPT_INT, "10", "steps between checkpoints", INTO(struct rl_options, save_every)},
    SECRET_ROW("rl"),
    {"rl", "device", OPT_STR, "cpu", "cpu, cuda or cuda:N: where the model runs", INTO(struct rl_options, device)},
    {"rl", "dtype", OPT_CHOICE, "bf16", "bf16|fp32: type of activations and operands on a device",
     INTO(struct rl_options, dtype)},
    {"rl", "seed", OPT_INT, "1", "seed of prompts and sampling", INTO(struct rl_options, seed)},
    {0},
};

/* Fills r from the options, which must outlive it. */
static int rl_options_of(const struct opts *o, struct rl_options *r, struct err *e)
{
    *r = (struct rl_options){.claim = o->values, .reward = reward_params_of(o),
                             .strict = !strcmp(opts_str(o, "logprobs"), "strict")};
    if (opts_store(o, r, e) < 0)
        return -1;
    if (!opts_bool(o, "bdr"))
        r->bdr_size = 0;
    if (!r->model || !r->data || !r->out)
        return err_set(e, ERR_INPUT, "'--model', '--prompts' and '--out' are needed");
    r->max_new = (int)opts_int(o, "max-new");
    if (schedule_check(&r->schedule, e) < 0 ||
        schedule_kind_of(opts_str(o, "schedule"), &r->schedule.kind, e) < 0 ||
        aggregate_kind_of(opts_str(o, "aggregate"), &r->policy.aggregate, e) < 0 ||
        kl_kind_of(opts_str(o, "kl"), &r->policy.kl, e) < 0 ||
        loss_terms_parse(opts_str(o, "loss-terms"), &r->policy.terms, e) < 0 ||
        prompt_style_parse(opts_str(o, "style"), &r->style, e) < 0)
        return -1;
    if (rollout_engine_sync_of(opts_str(o, "rollout-sync"), &r->sync, e) < 0)
        return -1;
    return advantage_kind_of(opts_str(o, "advantage"), &r->advantage, e);
}

/* What 'run' asks before its first stage: 0, or -1 for options that the command would refuse. */
static int rl_command_check(const struct opts *o, struct err *e)
{
    struct rl_options r;

    if (rl_options_of(o, &r, e) < 0)
        return -1;
    r.max_new += r.max_new == 0; /* the model's own */
    return rl_check(&r, e);
}

/* The command; an exit code, or -1 with e. */
static int rl_command(const struct opts *o, struct err *e)
{
    struct rl_options r;
    json_t *verdict = verdicts_options_of(o);
    int rc = rl_options_of(o, &r, e);

    r.verdict = verdict;
    if (rc == 0)
        rc = model_folder_max_new(r.model, opts_int(o, "max-new"), &r.max_new, e);
    if (rc == 0 && opts_has(o, "backend"))
        rc = eval_backend_check(opts_str(o, "backend"), e);
    if (rc == 0)
        rc = secret_use(o, e);
    if (rc == 0)
        rc = rl_run(&r, e);
    json_decref(verdict);
    if (rc < 0)
        return -1;
    printf("%s/model\n", r.out);
    return EXIT_OK;
}

const struct command cmd_rl = {
    "rl", "reinforcement learning with MooreEval as the reward", "--model DIR --prompts FILE --out RUN [options]",
    "GRPO on groups of sampled programs; the policy gradient covers the first response only. --turns 1 is "
    "the warm-up,\n"
    "--turns 3 appends MooreEval's feedback after a failure and rewards with PrimeEcho. Writes RUN/model,\n"
    "RUN/metrics.jsonl, RUN/verdicts.jsonl, RUN/rollouts and checkpoints. Ctrl-C is safe: the same command continues, "
    "bit for bit.\n", rows, rl_command, 0, rl_command_check};
