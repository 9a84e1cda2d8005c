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

/* Both halves' options. 'learn' stands first: sft's rows write into it. */
struct rft_settings {
    struct sft_options learn;
    struct rft_options collect;
};

static const struct opt rows[] = {
    {"rft", "model", OPT_PATHS, NULL, "model folder to sample from and to continue", INTO(struct sft_options, model)},
    {"rft", "prompts", OPT_PATHS, NULL, "prompts.jsonl of 'musacoder synth'", INTO(struct rft_settings, collect.data)},
    {"rft", "data", OPT_PATHS, NULL, "JSON Lines files mixed with what is kept (default: what is kept alone)",
     INTO(struct sft_options, data)},
    {"rft", "out", OPT_OUT_FOLDER, NULL, "run folder; a stopped run continues from it", INTO(struct sft_options, out)},
    {"rft", "metrics", OPT_OUT_FOLDER, NULL, "folder of metrics.jsonl (default: the run folder)",
     INTO(struct sft_options, metrics)},
    {"rft", "stage", OPT_STR, "rft", "name of this stage in metrics.jsonl", INTO(struct sft_options, stage)},
    {"rft", "max-prompts", OPT_INT, "0", "prompts sampled (0: all)", INTO(struct rft_settings, collect.prompts)},
    {"rft", "samples", OPT_INT, "8", "responses sampled for each prompt", INTO(struct rft_settings, collect.samples)},
    {"rft", "temperature", OPT_REAL, "0.9", "sampling temperature", INTO(struct rft_settings, collect.temperature)},
    {"rft", "max-new", OPT_INT, "512", "longest response (tokens); 0: what the model's folder says",
     INTO(struct rft_settings, collect.max_new)},
    {"rft", "chunk", OPT_INT, "16", "prompts sampled together", INTO(struct rft_settings, collect.chunk)},
    {"rft", "threshold", OPT_REAL, STR(CLUSTER_THRESHOLD), "Jaccard index from which two programs are one strategy",
     INTO(struct rft_settings, collect.threshold)},
    {"rft", "max-keep", OPT_INT, "4", "programs kept of one prompt at most",
     INTO(struct rft_settings, collect.max_keep)},
    {"rft", "keep-min", OPT_INT, "1", "prompts are kept whose samples pass so often at least",
     INTO(struct rft_settings, collect.keep_min)},
    {"rft", "keep-max", OPT_INT, "0", "and so often at most; 0: no limit. What all samples solve teaches nothing",
     INTO(struct rft_settings, collect.keep_max)},
    {"rft", "repairs", OPT_BOOL, "false",
     "failures a few lines away from a sample that passes become dialogues (kind 'own' of the mixture)",
     INTO(struct rft_settings, collect.repairs)},
    {"rft", "style", OPT_CHOICE, "plain", "plain|full: wording of the feedback in them"},
    {"rft", "dialect", OPT_CHOICE, NULL, "cuda|musa: what answers must be written in (default: either)"},
    {"rft", "backend", OPT_CHOICE, NULL, BACKEND_WORDS ": where candidates run (default: the judge's)"},
    {"rft", "protocol", OPT_CHOICE, NULL,
     "strict|strict-torch|kernelbench: rules of the verdict (default: the judge's)"},
    {"rft", "trials", OPT_INT, NULL, "trials of each verdict (default: the judge's)"},
    {"rft", "timeout", OPT_REAL, NULL, "seconds a candidate may run (default: the judge's)"},
    {"rft", "workers", OPT_INT, "1", "verifier processes", INTO(struct rft_settings, collect.workers)},
    {"rft", "jobs", OPT_INT, "0", "candidates judged at once by each (0: 1.5 for each CPU)",
     INTO(struct rft_settings, collect.jobs)},
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

/* *s borrows from o, which must outlive it. What both halves have is told once. */
static int rft_settings_of(const struct opts *o, struct rft_settings *s, struct err *e)
{
    *s = (struct rft_settings){.collect.claim = o->values};
    if (opts_store(o, s, e) < 0)
        return -1;
    s->collect.style = strcmp(opts_str(o, "style"), "full") ? PROMPT_PLAIN : PROMPT_FULL;
    s->collect.model = s->learn.model, s->collect.out = s->learn.out;
    s->collect.metrics = s->learn.metrics, s->collect.stage = s->learn.stage;
    s->collect.device = s->learn.device, s->collect.dtype = s->learn.dtype;
    s->collect.seed = s->learn.seed;
    return 0;
}

static int rft_do_collect(const struct opts *o, const json_t *verdict, struct err *e)
{
    struct rft_settings s;

    if (rft_settings_of(o, &s, e) < 0)
        return -1;
    s.collect.verdict = verdict;
    if (model_folder_max_new(s.collect.model, s.collect.max_new, &s.collect.max_new, e) < 0)
        return -1;
    return rft_collect(&s.collect, e);
}

/* Trains on the kept answers, and on --data before them. */
static int rft_learn(const struct opts *o, struct err *e)
{
    struct rft_settings s;
    struct opts with = *o;
    char *kept = path_join(opts_str(o, "out"), "rft.jsonl"), *data;
    int rc, lock = -1;

    data = opts_has(o, "data") ? xasprintf("%s,%s", opts_str(o, "data"), kept) : xstrdup(kept);
    with.values = json_copy(o->values);
    json_object_set_new(with.values, "data", json_string(data));
    rc = sft_options_of(&with, &s.learn, e);
    if (rc == 0)
        rc = folder_lock(s.learn.out, "musacoder", &lock, e);
    if (rc == 0)
        rc = sft_run(&s.learn, e);
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
    struct rft_settings s;

    if (rft_settings_of(o, &s, e) < 0)
        return -1;
    if (!s.collect.model || !s.collect.data || !s.collect.out)
        return err_set(e, ERR_INPUT, "'--model', '--prompts' and '--out' are needed");
    s.collect.max_new += s.collect.max_new == 0; /* the model's own */
    return rft_check(&s.collect, e) < 0 ? -1 : schedule_check(&s.learn.schedule, e);
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
