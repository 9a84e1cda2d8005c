/* model_io.c - Hugging Face model folders, in. Out: model_save.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/listing.h"
#include "base/mem.h"
#include "nn/chat.h"
#include "nn/model.h"
#include "nn/model_private.h"
#include "nn/safetensors.h"

struct model *model_new_empty(const struct model_config *c, struct err *e);

int model_tensor_shape(const struct model_tensor *t, int64_t *shape)
{
    shape[0] = t->is_vector ? t->cols : t->rows;
    shape[1] = t->is_conv ? 1 : t->cols;
    shape[2] = t->cols;
    return t->is_vector ? 1 : t->is_conv ? 3 : 2;
}

/* A weight's tensor in the files; NULL with e where it is missing or of another shape. */
static const struct st_tensor *model_io_source_of(const struct model_tensor *t, const struct safetensors *s,
                                                  struct err *e)
{
    const struct st_tensor *src = st_find(s, t->name);
    int64_t shape[3];
    int dims = model_tensor_shape(t, shape);

    if (!src)
        err_set(e, ERR_INPUT, "tensor '%s' is missing; the weights do not belong to this config.json", t->name);
    else if (src->n_dims != dims || memcmp(src->shape, shape, (size_t)dims * sizeof *shape))
        err_set(e, ERR_INPUT, "tensor '%s' has another shape than config.json says (%d x %d)", t->name, t->rows,
                t->cols);
    else if (src->dtype != ST_F32 && src->dtype != ST_F16 && src->dtype != ST_BF16 && src->dtype != ST_F64)
        err_set(e, ERR_INPUT, "tensor '%s' is %s; weights must be floating point", t->name, st_dtype_name(src->dtype));
    else
        return src;
    return NULL;
}

/* A file saved with tied weights may carry a copy of them; a file saved without needs its own. */
static int model_io_load_weights(struct model *m, const struct safetensors *s, bool read, struct err *e)
{
    for (int i = 0; i < m->n_tensors; i++) {
        struct model_tensor *t = &m->tensors[i];
        const struct st_tensor *src = model_io_source_of(t, s, e);
        if (!src)
            return -1;
        if (read)
            st_to_f32(src, m->weights + t->offset);
        snprintf(t->dtype, sizeof t->dtype, "%s", st_dtype_name(src->dtype));
    }
    return 0;
}

/* generation_config.json, when there is one, knows the ids that end a turn better than config.json. */
static int model_io_read_generation_config(struct model_config *c, const char *dir, struct err *e)
{
    char *path = path_join(dir, "generation_config.json");
    json_t *o = file_exists(path) ? json_read(path, e) : json_object();
    int64_t most = json_i64(o, "max_new_tokens", 0);
    int rc = o ? 0 : -1;

    if (rc == 0 && model_eos_parse(json_object_get(o, "eos_token_id"), c, e) < 0)
        rc = err_prefix(e, "'%s'", path);
    c->max_new = most > 0 && most < INT32_MAX ? (int)most : 0;
    json_decref(o);
    free(path);
    return rc;
}

int model_folder_max_new(const char *dir, int64_t asked, int *ret, struct err *e)
{
    struct model_config c = {0};

    *ret = (int)asked;
    if (asked || !dir)
        return 0;
    if (model_io_read_generation_config(&c, dir, e) < 0)
        return -1;
    *ret = c.max_new;
    return c.max_new ? 0 : err_set(e, ERR_INPUT, "--max-new 0 takes the longest answer from generation_config.json of "
                                                 "'%s', which has no max_new_tokens; name a number", dir);
}

/* Some text-only checkpoints keep the names of the model with vision that they were cut from, and the other way
 * round: the
 * file decides. */
static void model_io_find_prefix(struct model_config *c, const struct safetensors *s)
{
    static const char *const known[] = {"model.language_model.", "model."};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char *name = xasprintf("%sembed_tokens.weight", known[i]);
        bool here = st_find(s, name);
        free(name);
        if (here) {
            snprintf(c->prefix, sizeof c->prefix, "%s", known[i]);
            return;
        }
    }
}

/* read: the weights too, not their names and shapes alone. */
static struct model *model_io_load_from(const char *dir, struct model_config *c, bool read, struct err *e)
{
    struct safetensors *s = st_open(dir, e);
    struct model *m;

    if (!s)
        return NULL;
    model_io_find_prefix(c, s);
    m = model_new_empty(c, e);
    if (m && model_io_load_weights(m, s, read, e) < 0) {
        model_free(m);
        m = NULL;
    }
    st_close(s);
    return m;
}

/* A model of the folder; read false: without its weights. NULL with e. */
static struct model *model_io_load(const char *dir, bool read, struct err *e)
{
    char *path = path_join(dir, "config.json");
    struct model_config c;
    struct model *m = NULL;
    int rc = model_config_read(path, &c, e);

    free(path);
    if (rc < 0)
        return NULL;
    m = model_io_load_from(dir, &c, read, e);
    model_config_free(&c);
    if (!m) {
        err_prefix(e, "model '%s'", dir);
        return NULL;
    }
    if (model_io_read_generation_config(&m->config, dir, e) < 0) {
        model_free(m);
        return NULL;
    }
    m->dir = xstrdup(dir);
    return m;
}

struct model *model_load(const char *dir, struct err *e)
{
    return listing_check_own(dir, e) < 0 ? NULL : model_io_load(dir, true, e);
}

int model_check_folder(const char *dir, struct err *e)
{
    struct tokenizer *tok = tokenizer_load(dir, e);
    struct model *m = tok ? model_io_load(dir, false, e) : NULL;
    struct chat chat;
    int rc = m ? model_use_tokenizer(m, tok, e) : -1;

    if (rc == 0) {
        rc = chat_begin(&chat, tok, CHAT_THINK_DEFAULT, e);
        chat_free(&chat);
    }
    model_free(m);
    tokenizer_free(tok);
    return rc < 0 ? err_prefix(e, "'%s' cannot be trained from", dir) : 0;
}
