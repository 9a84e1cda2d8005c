/* cmd_rl.c - 'musacoder rl': options to train/rl.h. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/reward_rows.h"
#include "cli/secret.h"
#include "cli/train_opts.h"
#include "eval/eval.h"
#include "nn/model.h"
#include "train/rl.h"
#include "verdicts/verdicts.h"

static const struct opt rows[] = {
    {"rl", "model", OPT_STR, NULL, "model folder to start from (with tokenizer.json)"},
    {"rl", "prompts", OPT_STR, NULL, "prompts.jsonl of 'musacoder synth' (verl/TRL columns)"},
    {"rl", "out", OPT_STR, NULL, "run folder; a stopped run continues from it"},
    {"rl", "metrics", OPT_STR, NULL, "folder of metrics.jsonl (default: the run folder)"},
    {"rl", "stage", OPT_STR, "rl", "name of this stage in metrics.jsonl"},
    {"rl", "turns", OPT_INT, "1", "responses at most; after a failure MooreEval's feedback is the next request"},
    {"rl", "steps", OPT_INT, "100", "rollout batches"},
    {"rl", "batch-prompts", OPT_INT, "64", "prompts of a step"},
    {"rl", "group", OPT_INT, "8", "samples of each prompt"},
    {"rl", "oversample", OPT_REAL, "1",
     "from 1: groups drawn for each that is learned from; those of mixed rewards come first"},
    {"rl", "sleep", OPT_BOOL, "false",
     "a prompt whose group passed whole, or failed whole twice, is left out for a pass"},
    {"rl", "temperature", OPT_REAL, "0.9", "from 0: sampling temperature; the trainer divides logits by it too"},
    {"rl", "top-p", OPT_REAL, "1", "0 to 1: below 1: draw from the likeliest ids; training's softmax runs over the "
                                   "same"},
    {"rl", "max-new", OPT_INT, "512", "longest response (tokens); 0: what the model's folder says"},
    {"rl", "max-prompt", OPT_INT, "2048", "longest prompt, repair dialogues included (tokens)"},
    {"rl", "micro-tokens", OPT_INT, "4096", "tokens forwarded together"},
    {"rl", "minibatches", OPT_INT, "1", "optimiser steps that share a rollout batch"},
    {"rl", "epochs", OPT_INT, "1", "passes over a rollout batch"},
    {"rl", "lr", OPT_REAL, "1e-6", "peak learning rate"},
    {"rl", "warmup-updates", OPT_INT, "4", "optimiser updates with rising rate (a step makes minibatches x epochs)"},
    {"rl", "schedule", OPT_CHOICE, "constant", "constant|linear|cosine: shape after warm-up"},
    {"rl", "lr-floor", OPT_REAL, "0.1", "0 to 1: final rate as a share of the peak"},
    {"rl", "weight-decay", OPT_REAL, "0.1", "AdamW's weight decay"},
    {"rl", "beta2", OPT_REAL, "0.999", "AdamW's decay of the second moment"},
    {"rl", "eps", OPT_REAL, "1e-8", "AdamW's epsilon"},
    {"rl", "moments", OPT_BOOL, "false",
     "begin with the moments that the model was trained with (RUN/model of a run here)"},
    {"rl", "average", OPT_REAL, "0",
     "0 to 1: above 0: save this share of the starting model and the rest of the mean over the last half of the steps"},
    {"rl", "grad-clip", OPT_REAL, "0.5", "from 0: largest gradient norm; 0: no limit"},
    {"rl", "advantage", OPT_CHOICE, "grpo", "grpo|rloo|dr_grpo: group-relative estimator"},
    {"rl", "advantage-eps", OPT_REAL, "1e-6", "added to the group's standard deviation"},
    {"rl", "negative-weight", OPT_REAL, "1", "factor of advantages below 0"},
    {"rl", "permute-rewards", OPT_BOOL, "false", "a control: rewards of a group go to other samples of it"},
    REWARD_ROWS("rl"),
    {"rl", "eps-low", OPT_REAL, "0.2", "0 to 1: lower bound of the ratio: 1 - eps-low"},
    {"rl", "eps-high", OPT_REAL, "0.28", "upper bound of the ratio: 1 + eps-high"},
    {"rl", "aggregate", OPT_CHOICE, "token_mean",
     "token_mean|seq_mean_token_mean|seq_mean_token_sum|seq_mean_token_sum_norm: loss aggregation"},
    {"rl", "after-mask", OPT_BOOL, "false", "count what is left after masking, instead of all tokens"},
    {"rl", "kl", OPT_CHOICE, "k3", "none|k2|k3: estimator of KL to the starting model"},
    {"rl", "kl-coef", OPT_REAL, "0", "weight of the KL term"},
    {"rl", "entropy-coef", OPT_REAL, "0", "weight of the entropy bonus"},
    {"rl", "primeecho", OPT_BOOL, "true", "several turns: reward first and best turn (else the first turn alone)"},
    {"rl", "alpha", OPT_REAL, "0.75", "PrimeEcho: weight of the first turn"},
    {"rl", "bonus-first", OPT_REAL, "0.15", "PrimeEcho: bonus for passing in turn 1"},
    {"rl", "bonus-second", OPT_REAL, "0.08", "PrimeEcho: bonus for passing in turn 2"},
    {"rl", "bdr", OPT_BOOL, "true", "Buffered Dynamic Retry: failed groups come back as repair tasks"},
    {"rl", "bdr-size", OPT_INT, "256", "entries of the retry buffer"},
    {"rl", "bdr-probability", OPT_REAL, "0.1", "0 to 1: chance that a prompt is taken from the retry buffer"},
    {"rl", "bdr-min-pass", OPT_REAL, "0.03",
     "0 to 1: the buffer is asked an eighth as often while fewer of its last repairs pass; 0: always as often"},
    {"rl", "mirrorpop", OPT_BOOL, "true", "leave out responses that are too far off policy"},
    {"rl", "delta", OPT_REAL, "0.02", "MirrorPop: largest mean |log ratio|"},
    {"rl", "logprobs", OPT_CHOICE, "fast", "fast|strict: behaviour log-probs of the sampler, or the training pass"},
    {"rl", "rollout-engine", OPT_CHOICE, "own",
     "own|openai: this process, or a server that returns token ids and log-probs"},
    {"rl", "rollout-url", OPT_STR, NULL, "openai: http://HOST:PORT/v1 of vLLM (--logprobs-mode processed_logprobs), "
                                         "SGLang, 'musacoder serve --model'"},
    {"rl", "rollout-model", OPT_STR, NULL, "openai: the model as the server calls it (default: its first)"},
    {"rl", "rollout-parallel", OPT_INT, "64", "openai: requests at a time"},
    {"rl", "rollout-sync", OPT_CHOICE, "none",
     "none|disk: openai: after each step save weights to RUN/weights and POST /update_weights_from_disk"},
    {"rl", "staleness", OPT_INT, "0",
     "batches drawn ahead: the next is sampled and judged while this one is learned from"},
    {"rl", "edits", OPT_BOOL, "false",
     "what failed is shown with numbered lines, and the answer may be the lines that change"},
    {"rl", "style", OPT_CHOICE, "plain", "plain|full: wording of the feedback"},
    {"rl", "dialect", OPT_CHOICE, NULL, "cuda|musa: what answers must be written in (default: either)"},
    {"rl", "backend", OPT_CHOICE, NULL, "sim|cuda: where candidates run (default: the judge's)"},
    {"rl", "protocol", OPT_CHOICE, NULL, "strict|kernelbench: rules of the verdict (default: the judge's)"},
    {"rl", "trials", OPT_INT, NULL, "trials of each verdict (default: the judge's)"},
    {"rl", "timeout", OPT_REAL, NULL, "seconds a candidate may run (default: the judge's)"},
    {"rl", "workers", OPT_INT, "1", "verifier processes"},
    {"rl", "jobs", OPT_INT, "0", "candidates judged at once by each (0: 1.5 for each CPU)"},
    {"rl", "rollouts", OPT_BOOL, "true", "keep RUN/rollouts/STEP.jsonl: tokens, log-probs and verdict of every turn"},
    {"rl", "save-every", OPT_INT, "10", "steps between checkpoints"},
    SECRET_ROW("rl"),
    {"rl", "device", OPT_STR, "cpu", "cpu, cuda or cuda:N: where the model runs"},
    {"rl", "dtype", OPT_CHOICE, "bf16", "bf16|fp32: type of activations and operands on a device"},
    {"rl", "seed", OPT_INT, "1", "seed of prompts and sampling"},
    {0},
};

static int rl_policy_of(const struct opts *o, struct policy_options *p, struct err *e)
{
    *p = (struct policy_options){.clip = {opts_real(o, "eps-low"), opts_real(o, "eps-high")},
                                 .after_mask = opts_bool(o, "after-mask"), .kl_coef = opts_real(o, "kl-coef"),
                                 .entropy_coef = opts_real(o, "entropy-coef"), .mirrorpop = opts_bool(o, "mirrorpop"),
                                 .delta = opts_real(o, "delta")};
    if (aggregate_kind_of(opts_str(o, "aggregate"), &p->aggregate, e) < 0)
        return -1;
    return kl_kind_of(opts_str(o, "kl"), &p->kl, e);
}

static int rl_options_of(const struct opts *o, struct rl_options *r, struct err *e)
{
    *r = (struct rl_options){
        .model = opts_str(o, "model"), .data = opts_str(o, "prompts"), .out = opts_str(o, "out"),
        .metrics = opts_str(o, "metrics"), .stage = opts_str(o, "stage"), .claim = o->values,
        .steps = opts_int(o, "steps"), .save_every = opts_int(o, "save-every"),
        .prompts = (int)opts_int(o, "batch-prompts"), .group = (int)opts_int(o, "group"),
        .turns = (int)opts_int(o, "turns"),
        .max_prompt = (int)opts_int(o, "max-prompt"), .micro_tokens = (int)opts_int(o, "micro-tokens"),
        .minibatches = (int)opts_int(o, "minibatches"), .epochs = (int)opts_int(o, "epochs"),
        .temperature = opts_real(o, "temperature"), .top_p = opts_real(o, "top-p"),
        .schedule = {.peak = opts_real(o, "lr"), .floor = opts_real(o, "lr-floor")},
        .warmup_updates = opts_int(o, "warmup-updates"), .oversample = opts_real(o, "oversample"),
        .sleep = opts_bool(o, "sleep"), .beta2 = opts_real(o, "beta2"), .eps = opts_real(o, "eps"),
        .moments = opts_bool(o, "moments"), .average = opts_real(o, "average"),
        .negative_weight = opts_real(o, "negative-weight"), .permute_rewards = opts_bool(o, "permute-rewards"),
        .edits = opts_bool(o, "edits"), .bdr_min_pass = opts_real(o, "bdr-min-pass"),
        .weight_decay = opts_real(o, "weight-decay"), .grad_clip = opts_real(o, "grad-clip"),
        .reward = reward_params_of(o),
        .advantage_eps = opts_real(o, "advantage-eps"), .primeecho = opts_bool(o, "primeecho"),
        .echo = {opts_real(o, "alpha"), opts_real(o, "bonus-first"), opts_real(o, "bonus-second")},
        .engine = opts_str(o, "rollout-engine"), .url = opts_str(o, "rollout-url"),
        .url_model = opts_str(o, "rollout-model"), .parallel = (int)opts_int(o, "rollout-parallel"),
        .staleness = (int)opts_int(o, "staleness"),
        .rollouts = opts_bool(o, "rollouts"), .strict = !strcmp(opts_str(o, "logprobs"), "strict"),
        .bdr_size = opts_bool(o, "bdr") ? (int)opts_int(o, "bdr-size") : 0,
        .bdr_probability = opts_real(o, "bdr-probability"), .workers = (int)opts_int(o, "workers"),
        .jobs = (int)opts_int(o, "jobs"), .seed = (uint64_t)opts_int(o, "seed"),
        .device = opts_str(o, "device"), .dtype = opts_str(o, "dtype")};
    if (!r->model || !r->data || !r->out)
        return err_set(e, ERR_INPUT, "'--model', '--prompts' and '--out' are needed");
    if (model_folder_max_new(r->model, opts_int(o, "max-new"), &r->max_new, e) < 0 ||
        schedule_check(&r->schedule, e) < 0 ||
        schedule_kind_of(opts_str(o, "schedule"), &r->schedule.kind, e) < 0 || rl_policy_of(o, &r->policy, e) < 0 ||
        prompt_style_parse(opts_str(o, "style"), &r->style, e) < 0)
        return -1;
    if (rollout_engine_sync_of(opts_str(o, "rollout-sync"), &r->sync, e) < 0)
        return -1;
    return advantage_kind_of(opts_str(o, "advantage"), &r->advantage, e);
}

static int rl_command(const struct opts *o, struct err *e)
{
    struct rl_options r;
    json_t *verdict = verdicts_options_of(o);
    int rc = rl_options_of(o, &r, e);

    r.verdict = verdict;
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
    "bit for bit.\n", rows, rl_command, 0};
