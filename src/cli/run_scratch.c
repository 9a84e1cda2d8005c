/* run_scratch.c - the stage 'init' of a recipe: a model from nothing (train/scratch.h), or one that is there
 * already. */
#include "base/log.h"
#include "cli/cli.h"
#include "cli/run.h"
#include "nn/model.h"
#include "train/scratch.h"

static const struct opt rows[] = {
    {"init", "data", OPT_PATHS, NULL, "JSON Lines files whose messages train the tokenizer"},
    {"init", "out", OPT_OUT_FOLDER, NULL, "model folder to make"},
    {"init", "from", OPT_PATHS, NULL, "start from this model folder instead of random weights"},
    {"init", "vocab", OPT_INT, "2048", "tokens of the vocabulary"},
    {"init", "hidden", OPT_INT, "192", "width"},
    {"init", "intermediate", OPT_INT, "512", "width of the MLP"},
    {"init", "layers", OPT_INT, "5", "layers"},
    {"init", "heads", OPT_INT, "6", "attention heads"},
    {"init", "kv-heads", OPT_INT, "3", "key-value heads"},
    {"init", "head-dim", OPT_INT, "32", "width of a head"},
    {"init", "positions", OPT_INT, "2048", "longest context"},
    {"init", "initializer-range", OPT_REAL, "0.02", "standard deviation of the weights"},
    {"init", "seed", OPT_INT, "1", "seed of the weights"},
    {0},
};

/* A callback of model_fill_folder: a copy of the model that 'from' names. */
static int run_scratch_copy_model(void *from, const char *to, struct err *e)
{
    struct model *m = model_load(from, e);
    int rc = m ? model_save(m, to, e) : -1;

    if (m)
        model_free(m);
    return rc;
}

/* The command: a tokenizer and random weights; an exit code, or -1 with e. */
static int scratch_command(const struct opts *o, struct err *e)
{
    struct scratch_options so = {
        .data = opts_str(o, "data"), .out = opts_str(o, "out"), .vocab = (int)opts_int(o, "vocab"),
        .hidden = (int)opts_int(o, "hidden"), .intermediate = (int)opts_int(o, "intermediate"),
        .layers = (int)opts_int(o, "layers"), .heads = (int)opts_int(o, "heads"),
        .kv_heads = (int)opts_int(o, "kv-heads"), .head_dim = (int)opts_int(o, "head-dim"),
        .positions = (int)opts_int(o, "positions"),
        .range = opts_real(o, "initializer-range"), .seed = (uint64_t)opts_int(o, "seed")};

    if (opts_has(o, "from"))
        return model_fill_folder(so.out, run_scratch_copy_model, (void *)opts_str(o, "from"), e) < 0 ? -1 : EXIT_OK;
    return scratch_make(&so, e) < 0 ? -1 : EXIT_OK;
}

const struct command cmd_scratch = {"init", "tokenizer and random weights from the corpus", "", "", rows,
                                    scratch_command, 0};
