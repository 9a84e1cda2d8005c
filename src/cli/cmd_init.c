/* cmd_init.c - a model folder with random weights. */

#include "base/log.h"
#include "cli/cli.h"
#include "nn/model.h"

static const struct opt rows[] = {
    {"init", "config", OPT_STR, NULL, "config.json of a model of a supported family, e.g. recipes/qwen3.5-9b.json"},
    {"init", "out", OPT_OUT_FOLDER, NULL, "folder to write: a new or empty one, or one that init or export wrote"},
    {"init", "dtype", OPT_STR, "fp32", "of the weights in the files: fp32 or bf16"},
    {"init", "shard-size", OPT_REAL, "50", "GB a file; smaller files are written at the same time"},
    {"init", "seed", OPT_INT, "1", "seed of the weights; same seed, same bytes"},
    {0},
};

/* The command; an exit code, or -1 with e. */
static int init_run(const struct opts *o, struct err *e)
{
    const char *config = opts_str(o, "config"), *out = opts_str(o, "out");
    struct model_save_options s = {.dtype = opts_str(o, "dtype"),
                                   .shard_bytes = (size_t)(opts_real(o, "shard-size") * 1e9)};
    struct model_config c;
    struct model *m;
    int rc;

    if (!config || !out)
        return err_set(e, ERR_INPUT, "--config and --out are needed");
    if (!(opts_real(o, "shard-size") > 0))
        return err_set(e, ERR_INPUT, "--shard-size wants a number of GB above 0");
    if (model_config_read(config, &c, e) < 0)
        return -1;
    m = model_init(&c, (uint64_t)opts_int(o, "seed"), e);
    model_config_free(&c);
    if (!m)
        return -1;
    rc = model_save_for(m, out, &s, e);
    if (rc == 0)
        log_info("wrote '%s': %.2f million weights", out, (double)m->n_params / 1e6);
    model_free(m);
    return rc < 0 ? -1 : EXIT_OK;
}

const struct command cmd_init = {
    "init", "make a model with random weights", "--config FILE --out DIR [--dtype fp32|bf16] [--seed N]",
    "Writes a Hugging Face model folder (config.json, model.safetensors, generation_config.json) with random weights:\n"
    "matrices are normal with the configuration's initializer_range, norms do nothing.\n",
    rows, init_run, 0};
