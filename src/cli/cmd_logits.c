/* cmd_logits.c - the logits of a list of token ids, for comparison with other implementations. */
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "nn/model.h"
#include "nn/safetensors.h"

static const struct opt rows[] = {
    {"logits", "model", OPT_STR, NULL, "model folder; config.json and safetensors are enough"},
    {"logits", "tokens", OPT_STR, NULL, "JSON file: a list of token ids"},
    {"logits", "out", OPT_OUT_FILE, NULL, "safetensors file to write: tensor 'logits', F32, (tokens, vocabulary)"},
    {"logits", "device", OPT_STR, "cpu", "cpu, cuda or cuda:N: where the model runs"},
    {"logits", "dtype", OPT_CHOICE, "bf16", "bf16|fp32: type of activations and operands on a device"},
    {0},
};

/* The token ids of a JSON file, of which there are *ret_n; the caller frees. NULL with e. */
static int32_t *logits_read_tokens(const char *path, int *ret_n, struct err *e)
{
    json_t *list = json_read(path, e), *v;
    int32_t *ids;
    size_t i;

    if (!list)
        return NULL;
    if (!json_is_array(list) || !json_array_size(list)) {
        err_set(e, ERR_INPUT, "'%s' is not a non-empty list of token ids", path);
        json_decref(list);
        return NULL;
    }
    ids = xcalloc(json_array_size(list), sizeof *ids);
    json_array_foreach(list, i, v) {
        if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > INT32_MAX) {
            err_set(e, ERR_INPUT, "'%s': entry %zu is not a token id", path, i);
            free(ids);
            json_decref(list);
            return NULL;
        }
        ids[i] = (int32_t)json_integer_value(v);
    }
    *ret_n = (int)json_array_size(list);
    json_decref(list);
    return ids;
}

/* Writes z, float32 (T, V), as the tensor 'logits' of a safetensors file. */
static int logits_write(const char *path, const float *z, int T, int V, struct err *e)
{
    struct st_writer *w = st_create(path, e);
    int64_t shape[2] = {T, V};

    if (!w)
        return -1;
    if (st_declare(w, "logits", ST_F32, 2, shape, e) < 0 ||
        st_write(w, z, (size_t)T * (size_t)V * sizeof *z, e) < 0) {
        st_abort(w);
        return -1;
    }
    return st_commit(w, e);
}

/* The command; an exit code, or -1 with e. */
static int logits_run(const struct opts *o, struct err *e)
{
    const char *dir = opts_str(o, "model"), *tokens = opts_str(o, "tokens"), *out = opts_str(o, "out");
    struct model *m;
    int32_t *ids;
    float *z;
    int T, rc = -1;

    if (!dir || !tokens || !out)
        return err_set(e, ERR_INPUT, "--model, --tokens and --out are needed");
    if (!(ids = logits_read_tokens(tokens, &T, e)))
        return -1;
    if ((m = model_load(dir, e))) {
        z = xmalloc((size_t)T * (size_t)m->config.vocab_size * sizeof *z);
        if (model_to_device(m, opts_str(o, "device"), opts_str(o, "dtype"), e) == 0 &&
            model_logits(m, ids, T, z, e) == 0)
            rc = logits_write(out, z, T, m->config.vocab_size, e);
        free(z);
        model_free(m);
    }
    free(ids);
    return rc < 0 ? -1 : EXIT_OK;
}

const struct command cmd_logits = {
    "logits", "compute the logits of a list of token ids", "--model DIR --tokens FILE.json --out FILE.safetensors",
    "Runs one forward pass in fp32 and writes the logits of every position, so that other implementations can be\n"
    "compared with this one. The folder may be one written by Transformers 4 or 5, with tied embeddings or without.\n",
    rows, logits_run, 0};
