/* model_io.c - Hugging Face model folders, in and out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "nn/model.h"
#include "nn/safetensors.h"

struct model *model_new_empty(const struct model_config *c, struct err *e);

/* As it is in files. Returns the number of dimensions. */
static int model_tensor_shape(const struct model_tensor *t, int64_t *shape)
{
    shape[0] = t->is_vector ? t->cols : t->rows;
    shape[1] = t->is_conv ? 1 : t->cols;
    shape[2] = t->cols;
    return t->is_vector ? 1 : t->is_conv ? 3 : 2;
}

static int load_tensor(struct model *m, struct model_tensor *t, const struct safetensors *s, struct err *e)
{
    const struct st_tensor *src = st_find(s, t->name);
    int64_t shape[3];
    int dims = model_tensor_shape(t, shape);

    if (!src)
        return err_set(e, ERR_INPUT, "tensor '%s' is missing; the weights do not belong to this config.json", t->name);
    if (src->n_dims != dims || memcmp(src->shape, shape, (size_t)dims * sizeof *shape))
        return err_set(e, ERR_INPUT, "tensor '%s' has another shape than config.json says (%d x %d)", t->name, t->rows,
                       t->cols);
    if (src->dtype != ST_F32 && src->dtype != ST_F16 && src->dtype != ST_BF16 && src->dtype != ST_F64)
        return err_set(e, ERR_INPUT, "tensor '%s' is %s; weights must be floating point", t->name,
                       st_dtype_name(src->dtype));
    st_to_f32(src, m->weights + t->offset);
    snprintf(t->dtype, sizeof t->dtype, "%s", st_dtype_name(src->dtype));
    return 0;
}

/* A file saved with tied weights may carry a copy of them; a file saved without needs its own. */
static int load_weights(struct model *m, const struct safetensors *s, struct err *e)
{
    int rc = 0;

    for (int i = 0; i < m->n_tensors && rc == 0; i++)
        rc = load_tensor(m, &m->tensors[i], s, e);
    return rc;
}

/* generation_config.json, when there is one, knows the ids that end a turn better than config.json. */
static int read_generation_config(struct model *m, const char *dir, struct err *e)
{
    char *path = path_join(dir, "generation_config.json");
    json_t *o = file_exists(path) ? json_read(path, e) : json_object();
    int rc = o ? 0 : -1;

    if (rc == 0 && model_eos_parse(json_object_get(o, "eos_token_id"), &m->config, e) < 0)
        rc = err_prefix(e, "'%s'", path);
    json_decref(o);
    free(path);
    return rc;
}

/* Some text-only checkpoints keep the names of the model with vision that they were cut from, and the other way
 * round: the
 * file decides. */
static void find_prefix(struct model_config *c, const struct safetensors *s)
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

static struct model *load_from(const char *dir, struct model_config *c, struct err *e)
{
    struct safetensors *s = st_open(dir, e);
    struct model *m;

    if (!s)
        return NULL;
    find_prefix(c, s);
    m = model_new_empty(c, e);
    if (m && load_weights(m, s, e) < 0) {
        model_free(m);
        m = NULL;
    }
    st_close(s);
    return m;
}

struct model *model_load(const char *dir, struct err *e)
{
    char *path = path_join(dir, "config.json");
    struct model_config c;
    struct model *m = NULL;
    int rc = model_config_read(path, &c, e);

    free(path);
    if (rc < 0)
        return NULL;
    m = load_from(dir, &c, e);
    model_config_free(&c);
    if (!m) {
        err_prefix(e, "model '%s'", dir);
        return NULL;
    }
    if (read_generation_config(m, dir, e) < 0) {
        model_free(m);
        return NULL;
    }
    m->dir = xstrdup(dir);
    return m;
}

/* ---- saving ---- */

static bool is_ours(const struct model *m, const char *name)
{
    return model_find(m, name) || (m->config.tied && !strcmp(name, "lm_head.weight"));
}

static int declare_all(const struct model *m, const struct safetensors *old, struct st_writer *w, struct err *e)
{
    for (int i = 0; i < m->n_tensors; i++) {
        const struct model_tensor *t = &m->tensors[i];
        int64_t shape[3];
        if (st_declare(w, t->name, ST_F32, model_tensor_shape(t, shape), shape, e) < 0)
            return -1;
    }
    for (size_t i = 0; old && i < st_count(old); i++) {
        const struct st_tensor *t = st_at(old, i);
        if (!is_ours(m, t->name) && st_declare(w, t->name, t->dtype, t->n_dims, t->shape, e) < 0)
            return -1;
    }
    return 0;
}

static int write_all(const struct model *m, const struct safetensors *old, struct st_writer *w, struct err *e)
{
    if (st_write(w, m->weights, m->n_params * sizeof *m->weights, e) < 0) // the slab is in order of declaration
        return -1;
    for (size_t i = 0; old && i < st_count(old); i++) {
        const struct st_tensor *t = st_at(old, i);
        if (!is_ours(m, t->name) && st_write(w, t->data, t->nbytes, e) < 0)
            return -1;
    }
    return 0;
}

/* A folder that held shards keeps no stale index beside the one new file. */
static int save_weights(const struct model *m, const char *dir, struct err *e)
{
    struct safetensors *old = m->dir ? st_open(m->dir, NULL) : NULL;
    char *path = path_join(dir, "model.safetensors"), *index = path_join(dir, "model.safetensors.index.json");
    struct st_writer *w = st_create(path, e);
    int rc = -1;

    if (w) {
        st_set_metadata(w, "format", "pt");
        if (declare_all(m, old, w, e) < 0 || write_all(m, old, w, e) < 0)
            st_abort(w);
        else
            rc = st_commit(w, e);
    }
    if (rc == 0)
        remove(index);
    st_close(old);
    free(path);
    free(index);
    return rc;
}

static void say_float32(json_t *o)
{
    json_object_del(o, "torch_dtype"); // of NULL: nothing happens
    json_object_set_new(o, "dtype", json_string("float32"));
}

static int save_config(const struct model *m, const char *dir, struct err *e)
{
    json_t *o = json_deep_copy(m->config.source);
    char *path = path_join(dir, "config.json");
    int rc;

    // what we write is fp32, under either spelling of the key, at either level
    say_float32(o);
    say_float32(json_object_get(o, "text_config"));
    if (!json_object_get(o, "architectures"))
        json_object_set_new(o, "architectures", json_pack("[s]", model_architecture(o)));
    rc = json_write(path, o, e);
    json_decref(o);
    free(path);
    return rc;
}

static int save_generation_config(const struct model *m, const char *dir, struct err *e)
{
    char *from = m->dir ? path_join(m->dir, "generation_config.json") : NULL;
    char *path = path_join(dir, "generation_config.json");
    json_t *o = from && file_exists(from) ? json_read(from, NULL) : NULL, *ids = json_array();
    int rc;

    if (!o)
        o = json_object();
    for (int i = 0; i < m->config.n_eos; i++)
        json_array_append_new(ids, json_integer(m->config.eos[i]));
    if (m->config.n_eos)
        json_object_set(o, "eos_token_id", ids);
    rc = json_write(path, o, e);
    json_decref(ids);
    json_decref(o);
    free(from);
    free(path);
    return rc;
}

static int carry_tokenizer(const struct model *m, const char *dir, struct err *e)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt",
                                        "special_tokens_map.json", "added_tokens.json", "chat_template.jinja",
                                        "chat_template.json"};
    int rc = 0;

    for (size_t i = 0; m->dir && i < sizeof names / sizeof names[0] && rc == 0; i++) {
        char *from = path_join(m->dir, names[i]), *to = path_join(dir, names[i]);
        if (file_exists(from) && !file_exists(to))
            rc = file_copy(from, to, e);
        free(from);
        free(to);
    }
    return rc;
}

int model_save(const struct model *m, const char *dir, struct err *e)
{
    if (model_fetch(m, e) < 0 || dir_make(dir, e) < 0 || save_weights(m, dir, e) < 0 || save_config(m, dir, e) < 0 ||
        save_generation_config(m, dir, e) < 0 || carry_tokenizer(m, dir, e) < 0)
        return err_prefix(e, "saving model to '%s'", dir);
    return 0;
}
