/* cmd_rft.c - 'musacoder rft': sample, verify, cluster, draw (train/rft.h), then SFT on the mixture (train/sft.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/secret.h"
#include "cli/train_opts.h"
#include "eval/build/judge_backend.h"
#include "eval/eval.h"
#include "nn/model.h"
#include "train/checkpoint.h"
#include "train/cluster.h"
#include "train/rft.h"
#include "train/lr_schedule.h"
#include "verdicts/verdicts.h"

#define STR2(x) #x
#define STR(x) STR2(x)

static const struct opt rows[] = {
    {"rft", "model", OPT_PATHS, NULL, "model folder to sample from and to continue", INTO(struct sft_options, model)},
    {"rft", "prompts", OPT_PATHS, NULL, "prompts.jsonl of 'musacoder synth'"},
    {"rft", "data", OPT_PATHS, NULL, "JSON Lines files mixed with what is kept (default: what is kept alone)",
     INTO(struct sft_options, data)},
    {"rft", "out", OPT_STR, NULL, "run folder; a stopped run continues from it", INTO(struct sft_options, out)},
    {"rft", "metrics", OPT_STR, NULL, "folder of metrics.jsonl (default: the run folder)",
     INTO(struct sft_options, metrics)},
    {"rft", "stage", OPT_STR, "rft", "name of this stage in metrics.jsonl", INTO(struct sft_options, stage)},
    {"rft", "max-prompts", OPT_INT, "0", "prompts sampled (0: all)"},
    {"rft", "samples", OPT_INT, "8", "responses sampled for each prompt"},
    {"rft", "temperature", OPT_REAL, "0.9", "sampling temperature"},
    {"rft", "max-new", OPT_INT, "512", "longest response (tokens); 0: what the model's folder says"},
    {"rft", "chunk", OPT_INT, "16", "prompts sampled together"},
    {"rft", "threshold", OPT_REAL, STR(CLUSTER_THRESHOLD), "Jaccard index from which two programs are one strategy"},
    {"rft", "max-keep", OPT_INT, "4", "programs kept of one prompt at most"},
    {"rft", "keep-min", OPT_INT, "1", "prompts are kept whose samples pass so often at least"},
    {"rft", "keep-max", OPT_INT, "0", "and so often at most; 0: no limit. What all samples solve teaches nothing"},
    {"rft", "repairs", OPT_BOOL, "false",
     "failures a few lines away from a sample that passes become dialogues (kind 'own' of the mixture)"},
    {"rft", "style", OPT_CHOICE, "plain", "plain|full: wording of the feedback in them"},
    {"rft", "dialect", OPT_CHOICE, NULL, "cuda|musa: what answers must be written in (default: either)"},
    {"rft", "backend", OPT_CHOICE, NULL, BACKEND_WORDS ": where candidates run (default: the judge's)"},
    {"rft", "protocol", OPT_CHOICE, NULL,
     "strict|strict-torch|kernelbench: rules of the verdict (default: the judge's)"},
    {"rft", "trials", OPT_INT, NULL, "trials of each verdict (default: the judge's)"},
    {"rft", "timeout", OPT_REAL, NULL, "seconds a candidate may run (default: the judge's)"},
    {"rft", "workers", OPT_INT, "1", "verifier processes"},
    {"rft", "jobs", OPT_INT, "0", "candidates judged at once by each (0: 1.5 for each CPU)"},
    {"rft", "order", OPT_CHOICE, "shuffled",
        "shuffled|easy-first: the first pass over each kind goes by the records' difficulty"},
    {"rft", "mix", OPT_STR, NULL,
     "shares of the tokens by kind of record, e.g. rft=0.4,repair=0.1; the others share the rest",
     INTO(struct sft_options, mix)},
    {"rft", "steps", OPT_INT, "200", "optimiser steps on the mixture; 0: only collect",
     INTO(struct sft_options, steps)},
    LEARN_ROWS("rft"),
    SECRET_ROW("rft"),
    {"rft", "device", OPT_STR, "cpu", "cpu, cuda or cuda:N: where the model runs", INTO(struct sft_options, device)},
    {"rft", "dtype", OPT_CHOICE, "bf16", "bf16|fp32: type of activations and operands on a device",
     INTO(struct sft_options, dtype)},
    {"rft", "seed", OPT_INT, "1", "seed of sampling, drawing and data order", INTO(struct sft_options, seed)},
    {0},
};

static struct rft_options rft_options_of(const struct opts *o)
{
    return (struct rft_options){
        .model = opts_str(o, "model"), .data = opts_str(o, "prompts"), .out = opts_str(o, "out"),
        .metrics = opts_str(o, "metrics"), .stage = opts_str(o, "stage"), .prompts = opts_int(o, "max-prompts"),
        .samples = (int)opts_int(o, "samples"), .chunk = (int)opts_int(o, "chunk"),
        .max_keep = (int)opts_int(o, "max-keep"), .max_new = (int)opts_int(o, "max-new"),
        .keep_min = (int)opts_int(o, "keep-min"), .keep_max = (int)opts_int(o, "keep-max"),
        .temperature = opts_real(o, "temperature"), .threshold = opts_real(o, "threshold"),
        .repairs = opts_bool(o, "repairs"),
        .style = strcmp(opts_str(o, "style"), "full") ? PROMPT_PLAIN : PROMPT_FULL,
        .claim = o->values,
        .workers = (int)opts_int(o, "workers"), .jobs = (int)opts_int(o, "jobs"), .seed = (uint64_t)opts_int(o, "seed"),
        .device = opts_str(o, "device"), .dtype = opts_str(o, "dtype")};
}

static int rft_do_collect(const struct opts *o, const json_t *verdict, struct err *e)
{
    struct rft_options ro = rft_options_of(o);

    ro.verdict = verdict;
    if (model_folder_max_new(ro.model, opts_int(o, "max-new"), &ro.max_new, e) < 0)
        return -1;
    return rft_collect(&ro, e);
}

/* Trains on the kept answers, and on --data before them. */
static int rft_learn(const struct opts *o, struct err *e)
{
    struct sft_options so;
    struct opts with = *o;
    char *kept = path_join(opts_str(o, "out"), "rft.jsonl"), *data;
    int rc, lock = -1;

    data = opts_has(o, "data") ? xasprintf("%s,%s", opts_str(o, "data"), kept) : xstrdup(kept);
    with.values = json_copy(o->values);
    json_object_set_new(with.values, "data", json_string(data));
    rc = sft_options_of(&with, &so, e);
    if (rc == 0)
        rc = folder_lock(so.out, "musacoder", &lock, e);
    if (rc == 0)
        rc = sft_run(&so, e);
    if (lock >= 0)
        close(lock);
    json_decref(with.values);
    free(kept);
    free(data);
    return rc;
}

/* Also what the second half would refuse after hours of sampling. */
static int rft_command_check(const struct opts *o, struct err *e)
{
    struct rft_options ro = rft_options_of(o);
    struct lr_schedule s = {.peak = opts_real(o, "lr"), .warmup = opts_real(o, "warmup"),
                            .floor = opts_real(o, "lr-floor")};

    if (!ro.model || !ro.data || !ro.out)
        return err_set(e, ERR_INPUT, "'--model', '--prompts' and '--out' are needed");
    ro.max_new += ro.max_new == 0; /* the model's own */
    return rft_check(&ro, e) < 0 ? -1 : schedule_check(&s, e);
}

/* ERR_INPUT where a file of --data is missing. */
static int rft_check_files(const struct opts *o, struct err *e)
{
    char *copy = xstrdup(opts_has(o, "data") ? opts_str(o, "data") : ""), *save = NULL;
    int rc = 0;

    for (char *file = strtok_r(copy, ",", &save); file && rc == 0; file = strtok_r(NULL, ",", &save))
        if (!file_exists(file))
            rc = err_set(e, ERR_INPUT, "no file '%s' of --data", file);
    free(copy);
    return rc;
}

/* The command: collects answers that pass, then learns them. */
static int rft_command(const struct opts *o, struct err *e)
{
    json_t *verdict = verdicts_options_of(o);
    const char *out = opts_str(o, "out");
    int rc = rft_command_check(o, e);

    if (rc == 0 && opts_has(o, "backend"))
        rc = eval_backend_check(opts_str(o, "backend"), e);
    if (rc == 0)
        rc = secret_use(o, e);
    if (rc == 0)
        rc = rft_check_files(o, e);
    if (rc == 0)
        rc = rft_do_collect(o, verdict, e);
    if (rc == 0 && opts_int(o, "steps") > 0)
        rc = rft_learn(o, e);
    json_decref(verdict);
    if (rc < 0)
        return -1;
    printf("%s/%s\n", out, opts_int(o, "steps") > 0 ? "model" : "rft.jsonl");
    return EXIT_OK;
}

const struct command cmd_rft = {
    "rft", "rejection fine-tuning that keeps diversity", "--model DIR --prompts FILE --data FILE --out RUN [options]",
    "Samples several responses for each prompt, keeps what MooreEval passes, clusters the correct programs of a "
    "prompt\n"
    "and draws one of each cluster; then fine-tunes on them together with the records of --data. "
    "Writes RUN/rft.jsonl,\n"
    "RUN/groups.jsonl, RUN/rft_stats.json and RUN/model. Ctrl-C is safe: the same command continues.\n",
    rows, rft_command, 0, rft_command_check};
