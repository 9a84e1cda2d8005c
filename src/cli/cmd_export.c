/* cmd_export.c - a model folder again, in another type of weights or in shards. */
#include "base/file.h"
#include "base/log.h"
#include "cli/cli.h"
#include "nn/model.h"

static const struct opt rows[] = {
    {"export", "model", OPT_STR, NULL, "model folder, e.g. RUN/model"},
    {"export", "out", OPT_OUT_FOLDER, NULL, "folder to write: a new or empty one, or one that init or export wrote"},
    {"export", "dtype", OPT_STR, "bf16", "of the weights: bf16, fp32, or same: each as it is in the folder"},
    {"export", "shard-size", OPT_REAL, "5", "GB a file; 5 is what most tools write"},
    {0},
};

/* The command; an exit code, or -1 with e. */
static int export_run(const struct opts *o, struct err *e)
{
    const char *from = opts_str(o, "model"), *to = opts_str(o, "out");
    struct model_save_options s = {.dtype = opts_str(o, "dtype"),
                                   .shard_bytes = (size_t)(opts_real(o, "shard-size") * 1e9)};
    struct model *m;
    int rc;

    if (!from || !to)
        return err_set(e, ERR_INPUT, "--model and --out are needed");
    if (!(opts_real(o, "shard-size") > 0))
        return err_set(e, ERR_INPUT, "--shard-size wants a number of GB above 0");
    if (file_is_same(from, to))
        return err_set(e, ERR_INPUT, "'%s' is the model's own folder, whose weights would be lost; name another --out",
                       to);
    if (!(m = model_load(from, e)))
        return -1;
    rc = model_save_for(m, to, &s, e);
    if (rc == 0)
        log_info("wrote '%s': %.2f million weights, %s", to, (double)m->n_params / 1e6, s.dtype);
    model_free(m);
    return rc < 0 ? -1 : EXIT_OK;
}

const struct command cmd_export = {
    "export", "write a model in bf16 or in shards", "--model DIR --out DIR [--dtype bf16|fp32|same] [--shard-size GB]",
    "Writes the model folder again as Transformers, vLLM and SGLang read it: weights in bf16 (training keeps fp32), in "
    "files\n"
    "of --shard-size GB with an index where one is not enough. The tokenizer's files and tensors that are not run "
    "here\n"
    "(vision, multi-token prediction) are carried over as they are.\n",
    rows, export_run, 0};
