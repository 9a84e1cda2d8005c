/* scratch.c - see scratch.h. */
#include "train/scratch.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "nn/bpe_train.h"
#include "nn/model.h"
#include "train/shards.h"

struct scratch_texts {
    char **v;
    size_t n, cap;
};

/* A callback of jsonl_each: collects a record's messages. */
static int scratch_add_texts(json_t *rec, size_t line, void *ctx, struct err *e)
{
    struct scratch_texts *t = ctx;
    const json_t *m;
    size_t i;

    (void)line, (void)e;
    json_array_foreach(json_object_get(rec, "messages"), i, m) {
        if (t->n == t->cap)
            t->v = xrealloc(t->v, (t->cap = t->cap ? 2 * t->cap : 1024) * sizeof *t->v);
        t->v[t->n++] = xstrdup(json_str(m, "content", ""));
    }
    return 0;
}

/* Trains a tokenizer on the data's messages and writes it. */
static int scratch_train_tokenizer(const struct scratch_options *o, const char *to, struct bpe_result *res,
                                   struct err *e)
{
    struct bpe_options bo = {.vocab_size = o->vocab};
    struct scratch_texts t = {0};
    char **files;
    size_t n;
    int rc = 0;

    if (shards_list(o->data, &files, &n, NULL, e) < 0)
        return -1;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = jsonl_each(files[i], scratch_add_texts, &t, e);
    if (rc == 0 && t.n == 0)
        rc = err_set(e, ERR_INPUT, "'%s' holds no messages to train a tokenizer on", o->data);
    if (rc == 0)
        rc = bpe_train((const char *const *)t.v, NULL, t.n, &bo, to, res, e);
    for (size_t i = 0; i < t.n; i++)
        free(t.v[i]);
    free(t.v);
    names_free(files, n);
    return rc;
}

/* bos and pad are <|endoftext|>, eos is <|im_end|>: the last and third to last ids of bpe_train. */
static json_t *scratch_config_json(const struct scratch_options *o, int vocab)
{
    return json_pack("{s:[s],s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:s,s:f,s:f,s:f,s:b,s:b,s:i,s:i,s:i,s:s}",
                     "architectures", "Qwen3ForCausalLM", "model_type", "qwen3", "vocab_size", vocab, "hidden_size",
                     o->hidden, "intermediate_size", o->intermediate, "num_hidden_layers", o->layers,
                     "num_attention_heads", o->heads, "num_key_value_heads", o->kv_heads, "head_dim", o->head_dim,
                     "max_position_embeddings", o->positions, "hidden_act", "silu", "rms_norm_eps", 1e-6, "rope_theta",
                     10000.0, "initializer_range", o->range, "tie_word_embeddings", 1, "attention_bias", 0,
                     "bos_token_id",
                     vocab - 3, "pad_token_id", vocab - 3, "eos_token_id", vocab - 1, "torch_dtype", "float32");
}

/* A callback of model_fill_folder: a model of random weights with its own tokenizer. */
static int scratch_fill(void *options, const char *work, struct err *e)
{
    const struct scratch_options *o = options;
    struct bpe_result res;
    struct model_config c;
    json_t *js = NULL;
    struct model *m;
    int rc;

    if (scratch_train_tokenizer(o, work, &res, e) < 0)
        return -1;
    js = scratch_config_json(o, res.vocab_size);
    rc = model_config_parse(js, &c, e);
    json_decref(js);
    if (rc < 0)
        return -1;
    m = model_init(&c, o->seed, e);
    model_config_free(&c);
    if (!m)
        return -1;
    rc = model_save(m, work, e);
    if (rc == 0)
        log_info("init: %d tokens from %.1f MB of text, %.2f million weights", res.vocab_size,
                 (double)res.n_bytes / 1e6, (double)m->n_params / 1e6);
    model_free(m);
    return rc;
}

int scratch_make(const struct scratch_options *o, struct err *e)
{
    return model_fill_folder(o->out, scratch_fill, (void *)o, e);
}
