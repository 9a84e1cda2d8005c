/* cmd_sft.c - 'musacoder sft': options to train/sft.h. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/train_opts.h"

static const struct opt sft_rows[] = {
    {"sft", "model", OPT_STR, NULL, "model folder to start from (with tokenizer.json)"},
    {"sft", "data", OPT_STR, NULL, "JSON Lines files of records, separated by commas"},
    {"sft", "out", OPT_STR, NULL, "run folder; a stopped run continues from it"},
    {"sft", "metrics", OPT_STR, NULL, "folder of metrics.jsonl (default: the run folder)"},
    {"sft", "stage", OPT_STR, "sft", "name of this stage in metrics.jsonl"},
    {"sft", "mix", OPT_STR, NULL, "weight of each kind of record, e.g. generate=1,repair=0.5 (default: all 1)"},
    {"sft", "steps", OPT_INT, "1000", "optimiser steps"},
    {"sft", "batch-tokens", OPT_INT, "4096", "tokens a step, at least"},
    {"sft", "micro-tokens", OPT_INT, "4096", "tokens forwarded together"},
    {"sft", "max-length", OPT_INT, "1024", "longer dialogues are left out (tokens)"},
    {"sft", "lr", OPT_REAL, "1e-5", "peak learning rate"},
    {"sft", "warmup", OPT_REAL, "0.03", "share of the steps with rising rate"},
    {"sft", "schedule", OPT_CHOICE, "cosine", "constant|linear|cosine: shape after warm-up"},
    {"sft", "lr-floor", OPT_REAL, "0.1", "final rate as a share of the peak"},
    {"sft", "weight-decay", OPT_REAL, "0.01", "AdamW's weight decay"},
    {"sft", "changed-weight", OPT_REAL, "1", "weight of the tokens that a repair changes; the others have 1"},
    {"sft", "grad-clip", OPT_REAL, "1", "largest gradient norm; 0: no limit"},
    {"sft", "val-share", OPT_REAL, "0.05", "share of the training graphs kept for the validation loss"},
    {"sft", "val-every", OPT_INT, "50", "steps between validations"},
    {"sft", "val-max", OPT_INT, "64", "validation examples at most"},
    {"sft", "save-every", OPT_INT, "100", "steps between checkpoints"},
    {"sft", "device", OPT_STR, "cpu", "cpu, cuda or cuda:N: where the model runs"},
    {"sft", "dtype", OPT_CHOICE, "bf16", "bf16|fp32: type of activations and operands on a device"},
    {"sft", "seed", OPT_INT, "1", "seed of the data order"},
    {0},
};

int sft_options_of(const struct opts *o, struct sft_options *ret, struct err *e)
{
    *ret = (struct sft_options){
        .model = opts_str(o, "model"), .data = opts_str(o, "data"), .out = opts_str(o, "out"),
        .metrics = opts_str(o, "metrics"), .stage = opts_str(o, "stage"), .mix = opts_str(o, "mix"),
        .steps = opts_int(o, "steps"), .batch_tokens = opts_int(o, "batch-tokens"),
        .micro_tokens = (int)opts_int(o, "micro-tokens"), .max_length = (int)opts_int(o, "max-length"),
        .weight_decay = opts_real(o, "weight-decay"), .grad_clip = opts_real(o, "grad-clip"),
        .changed_weight = opts_real(o, "changed-weight"),
        .val_share = opts_real(o, "val-share"), .val_every = opts_int(o, "val-every"),
        .save_every = opts_int(o, "save-every"), .val_max = (int)opts_int(o, "val-max"),
        .seed = (uint64_t)opts_int(o, "seed"), .device = opts_str(o, "device"), .dtype = opts_str(o, "dtype"),
        .schedule = {.peak = opts_real(o, "lr"), .warmup = opts_real(o, "warmup"), .floor = opts_real(o, "lr-floor")}};
    if (!ret->model || !ret->data || !ret->out)
        return err_set(e, ERR_INPUT, "'--model', '--data' and '--out' are needed");
    if (!(ret->changed_weight > 0))
        return err_set(e, ERR_INPUT, "changed-weight wants more than 0; 1 treats all tokens alike");
    return schedule_kind_of(opts_str(o, "schedule"), &ret->schedule.kind, e);
}

static int sft_command(const struct opts *o, struct err *e)
{
    struct sft_options so;

    if (sft_options_of(o, &so, e) < 0)
        return -1;
    so.claim = o->values;
    if (sft_run(&so, e) < 0)
        return -1;
    printf("%s/model\n", so.out);
    return EXIT_OK;
}

const struct command cmd_sft = {
    "sft", "supervised fine-tuning on a mixture of records", "--model DIR --data FILE[,FILE] --out RUN [options]",
    "Trains on the last response of each dialogue; what comes before is context. Writes RUN/model (Hugging Face\n"
    "layout), RUN/metrics.jsonl and checkpoints. Ctrl-C is safe: the same command continues, bit for bit.\n",
    sft_rows, sft_command};
