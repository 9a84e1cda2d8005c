/* cmd_sft.c - 'musacoder sft': options to train/sft.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/secret.h"
#include "cli/train_opts.h"
#include "eval/build/judge_backend.h"
#include "eval/eval.h"
#include "nn/model.h"
#include "train/checkpoint.h"
#include "train/harvest.h"
#include "train/ranks.h"
#include "verdicts/verdicts.h"

static const struct opt sft_rows[] = {
    {"sft", "model", OPT_PATHS, NULL, "model folder to start from (with tokenizer.json)",
     INTO(struct sft_options, model)},
    {"sft", "data", OPT_PATHS, NULL, "JSON Lines files of records, or folders of them, separated by commas",
     INTO(struct sft_options, data)},
    {"sft", "out", OPT_OUT_FOLDER, NULL, "run folder; a stopped run continues from it", INTO(struct sft_options, out)},
    {"sft", "metrics", OPT_OUT_FOLDER, NULL, "folder of metrics.jsonl (default: the run folder)",
     INTO(struct sft_options, metrics)},
    {"sft", "stage", OPT_STR, "sft", "name of this stage in metrics.jsonl", INTO(struct sft_options, stage)},
    {"sft", "order", OPT_CHOICE, "shuffled",
        "shuffled|easy-first: the first pass over each kind goes by the records' difficulty"},
    {"sft", "mix", OPT_STR, NULL,
     "shares of the tokens by kind of record, e.g. repair=0.2,knowledge=0.1; the others share the rest",
     INTO(struct sft_options, mix)},
    {"sft", "steps", OPT_INT, "1000", "optimiser steps", INTO(struct sft_options, steps)},
    LEARN_ROWS("sft"),
    {"sft", "device", OPT_STR, "cpu", "cpu, cuda or cuda:N: where the model runs", INTO(struct sft_options, device)},
    {"sft", "dtype", OPT_CHOICE, "bf16", "bf16|fp32: type of activations and operands on a device",
     INTO(struct sft_options, dtype)},
    {"sft", "zero", OPT_INT, "0", "with --gpus: 1: AdamW's moments in parts, one on each GPU (ZeRO-1); the same bits. "
     "2: fp32 weights and gradients too (ZeRO-2)",
     INTO(struct sft_options, zero)},
    {"sft", "gpus", OPT_INT, "1", "with --device cuda: so many GPUs of this host, each with its share of a batch"},
    {"sft", "seed", OPT_INT, "1", "seed of the data order", INTO(struct sft_options, seed)},
    {"sft", "harvest", OPT_PATHS, NULL,
        "harvest.jsonl of 'musacoder synth': the model answers its tasks, and learns from what fails as repairs"},
    {"sft", "harvest-at", OPT_REAL, "0.6", "share of the steps before the harvest"},
    {"sft", "harvest-tasks", OPT_INT, "0", "tasks of the harvest (0: no harvest)"},
    {"sft", "harvest-samples", OPT_INT, "1", "answers to each"},
    {"sft", "harvest-mix", OPT_STR, NULL,
        "mix after the harvest, whose records are of kind 'own' (default: that of mix)"},
    {"sft", "harvest-device", OPT_STR, "cpu", "cpu, cuda or cuda:N: where the harvest's samples are drawn"},
    {"sft", "temperature", OPT_REAL, "0.7", "of the harvest's samples"},
    {"sft", "max-new", OPT_INT, "512", "longest answer of the harvest (tokens); 0: the longest of the data"},
    {"sft", "edits", OPT_BOOL, "false",
     "the harvest's failures are shown with numbered lines and mended by lines, where few have to change"},
    {"sft", "style", OPT_CHOICE, "plain", "plain|full: how the judge's words are told, as in the prompts"},
    {"sft", "dialect", OPT_CHOICE, NULL, "cuda|musa: what answers must be written in (default: either)"},
    {"sft", "backend", OPT_CHOICE, NULL, BACKEND_WORDS ": where the harvest's programs run (default: the judge's)"},
    {"sft", "trials", OPT_INT, NULL, "trials of each verdict (default: the judge's)"},
    {"sft", "workers", OPT_INT, "1", "verifier processes"},
    {"sft", "jobs", OPT_INT, "0", "candidates judged at once by each (0: 1.5 for each CPU)"},
    SECRET_ROW("sft"),
    {0},
};

int sft_options_of(const struct opts *o, struct sft_options *ret, struct err *e)
{
    *ret = (struct sft_options){.easy_first = !strcmp(opts_str(o, "order"), "easy-first")};
    if (opts_store(o, ret, e) < 0)
        return -1;
    if (!ret->model || !ret->data || !ret->out)
        return err_set(e, ERR_INPUT, "'--model', '--data' and '--out' are needed");
    if (!(ret->changed_weight > 0))
        return err_set(e, ERR_INPUT, "changed-weight wants more than 0; 1 treats all tokens alike");
    if (schedule_check(&ret->schedule, e) < 0)
        return -1;
    return schedule_kind_of(opts_str(o, "schedule"), &ret->schedule.kind, e);
}

/* This command with all its options but 'gpus', as ranks of one group. */
static int sft_run_ranks(const struct opts *o, int gpus, struct err *e)
{
    char **args = xcalloc(json_object_size(o->values) + 1, sizeof *args);
    int n = 0, code = 0, rc;
    const char *key;
    json_t *v;

    args[n++] = xstrdup("sft");
    json_object_foreach(o->values, key, v) {
        char *text = json_is_string(v) ? xstrdup(json_string_value(v)) : json_text(v);
        if (strcmp(key, "gpus"))
            args[n++] = xasprintf("--%s=%s", key, text);
        free(text);
    }
    rc = ranks_launch(gpus, opts_str(o, "device"), args, n, &code, e);
    for (int i = 0; i < n; i++)
        free(args[i]);
    free(args);
    if (rc == 0 && code == EXIT_STOPPED)
        rc = err_set(e, ERR_STOP, "stopped; run again to continue");
    else if (rc == 0 && code)
        rc = err_set(e, ERR_ENV, "a rank ended with code %d; its own message stands above", code);
    return rc;
}

/* ---- with a harvest: a part of the steps, the harvest, the rest with its records ---- */

/* A copy of the options with other values. */
static struct opts sft_other(const struct opts *o, json_t *changes)
{
    struct opts with = *o;

    with.values = json_copy(o->values);
    json_object_update(with.values, changes);
    json_decref(changes);
    return with;
}

/* done: nothing is left to train; only that the options are those of then is looked at. */
static int sft_train(const struct opts *o, json_t *changes, bool done, struct err *e)
{
    struct opts with = sft_other(o, changes);
    int gpus = (int)opts_int(o, "gpus");
    struct sft_options so;
    int rc = sft_options_of(&with, &so, e);

    so.claim = with.values;
    if (!rc && done)
        rc = sft_check_same(&so, e);
    else if (!rc)
        rc = gpus > 1 ? sft_run_ranks(&with, gpus, e) : sft_run(&so, e);
    json_decref(with.values);
    return rc;
}

/* Has the half-trained model answer tasks and keeps its failures with their mends. */
static int sft_harvest(const struct opts *o, const char *model, const char *out, struct err *e)
{
    json_t *verdict = verdicts_options_of(o);
    struct harvest_options h = {
        .model = model, .data = opts_str(o, "harvest"), .out = out, .tasks = opts_int(o, "harvest-tasks"),
        .samples = (int)opts_int(o, "harvest-samples"),
        .chunk = strcmp(opts_str(o, "harvest-device"), "cpu") ? 512 : 64, /* a device decodes hundreds at once */
        .temperature = opts_real(o, "temperature"), .verdict = verdict, .workers = (int)opts_int(o, "workers"),
        .jobs = (int)opts_int(o, "jobs"), .seed = (uint64_t)opts_int(o, "seed"),
        .edits = opts_bool(o, "edits"), .device = opts_str(o, "harvest-device"),
        .dtype = opts_str(o, "dtype")};
    int rc = prompt_style_parse(opts_str(o, "style"), &h.style, e);

    if (!rc)
        rc = model_folder_max_new(model, opts_int(o, "max-new"), &h.max_new, e);
    if (!rc)
        rc = harvest_collect(&h, e);
    json_decref(verdict);
    return rc;
}

/* True if the options ask for a harvest of the model's own failures. */
static bool sft_harvests(const struct opts *o)
{
    return opts_has(o, "harvest") && opts_int(o, "harvest-tasks") > 0;
}

/* The steps before the harvest. */
static int64_t sft_first_steps(const struct opts *o)
{
    return (int64_t)((double)opts_int(o, "steps") * opts_real(o, "harvest-at"));
}

/* Trains the first steps, harvests, and trains the rest on both. */
static int sft_train_and_harvest(const struct opts *o, struct err *e)
{
    int64_t steps = opts_int(o, "steps"), first = sft_first_steps(o);
    const char *out = opts_str(o, "out"), *mix = opts_str(o, opts_has(o, "harvest-mix") ? "harvest-mix" : "mix");
    char *half = path_join(out, "first"), *model = path_join(half, "model"), *own = path_join(out, "harvest");
    char *data = xasprintf("%s,%s/own.jsonl", opts_str(o, "data"), own);
    char *stage = xasprintf("%s_first", opts_str(o, "stage")); /* else the second part's metrics replace its lines */
    int rc = folder_claim(out, "this training", e);

    if (!rc)
        rc = sft_train(o, json_pack("{s:I, s:s, s:s, s:s, s:i}", "steps", (json_int_t)first, "out", half, "stage",
                                    stage, "schedule", "wsd", "harvest-tasks", 0), run_model_is_saved(half), e);
    if (!rc)
        rc = sft_harvest(o, model, own, e);
    if (!rc)
        rc = sft_train(o, json_pack("{s:I, s:s, s:s, s:s*, s:i, s:b}", "steps", (json_int_t)(steps - first), "model",
                                    model, "data", data, "mix", mix, "harvest-tasks", 0, "moments", 1), false, e);
    free(half), free(model), free(own), free(data), free(stage);
    return rc;
}

/* ERR_INPUT for options that cannot be. */
static int sft_command_check(const struct opts *o, struct err *e)
{
    int gpus = (int)opts_int(o, "gpus");
    struct sft_options so;

    if (sft_options_of(o, &so, e) < 0 || sft_check(&so, e) < 0)
        return -1;
    if (gpus < 1 || gpus > RANKS_MAX || (gpus > 1 && strcmp(so.device, "cuda") && strcmp(so.device, "sim")))
        return err_set(e, ERR_INPUT, "gpus wants 1 to %d, and '--device cuda' for more than 1", RANKS_MAX);
    if (so.zero < 0 || so.zero > 2)
        return err_set(e, ERR_INPUT, "zero wants 0, 1 or 2, not %d: weights that operators read are whole on each GPU",
                       so.zero);
    if (sft_harvests(o) && (sft_first_steps(o) < 1 || sft_first_steps(o) >= so.steps))
        return err_set(e, ERR_INPUT, "harvest-at is %g; with %lld steps it must leave some before and some after",
                       opts_real(o, "harvest-at"), (long long)so.steps);
    return 0;
}

/* The command; prints the model's folder. */
static int sft_command(const struct opts *o, struct err *e)
{
    int rc;

    if (sft_command_check(o, e) < 0)
        return -1;
    if (!sft_harvests(o))
        rc = sft_train(o, json_object(), false, e);
    else if (opts_has(o, "backend") && eval_backend_check(opts_str(o, "backend"), e) < 0)
        rc = -1;
    else
        rc = secret_use(o, e) < 0 ? -1 : sft_train_and_harvest(o, e);
    if (rc < 0)
        return -1;
    printf("%s/model\n", opts_str(o, "out"));
    return EXIT_OK;
}

const struct command cmd_sft = {
    "sft", "supervised fine-tuning on a mixture of records", "--model DIR --data FILE[,FILE] --out RUN [options]",
    "Trains on the last response of each dialogue; what comes before is context. Writes RUN/model (Hugging Face\n"
    "layout), RUN/metrics.jsonl and checkpoints. Ctrl-C is safe: the same command continues, bit for bit.\n"
    "With --harvest the model answers tasks half-way; MooreEval judges, and failures become repair dialogues.\n",
    sft_rows, sft_command, 0, sft_command_check};
