/* model_save.c - Hugging Face model folders, out: one file or shards with an index, as Transformers writes them. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/half.h"
#include "base/json.h"
#include "base/listing.h"
#include "base/mem.h"
#include "nn/model.h"
#include "nn/model_private.h"
#include "nn/safetensors.h"

#define SHARD_BYTES 50000000000u /* Transformers 5's */
#define CHUNK (1 << 18)          /* weights converted at a time */
#define FIVE "[0-9][0-9][0-9][0-9][0-9]"
#define SHARD_PATTERN "model-" FIVE "-of-" FIVE ".safetensors"

/* One tensor of the file: ours, or one that is carried from the folder the model came from. */
struct model_save_part {
    const char *name;
    enum st_dtype dtype;
    int n_dims, shard;
    int64_t shape[ST_MAX_DIMS];
    const float *weights; /* ours: converted while writing */
    const void *bytes;    /* carried */
    size_t n, nbytes;
};

struct parts {
    struct model_save_part *v;
    size_t n, bytes;
    int shards;
};

/* True for tensors that the model itself writes. */
static bool model_save_is_ours(const struct model *m, const char *name)
{
    return model_find(m, name) || (m->config.tied && !strcmp(name, "lm_head.weight"));
}

/* Qwen3.5's own folders of bf16 hold these in fp32: a rate is an exponent's exponent, and costs nothing. */
static bool model_save_stays_fp32(const char *name)
{
    return strstr(name, ".linear_attn.A_log") || strstr(name, ".linear_attn.norm.weight");
}

/* The type in which a tensor is saved, by o->dtype: fp32, bf16, or the one it was loaded in. */
static enum st_dtype model_save_dtype_of(const struct model_tensor *t, const struct model_save_options *o)
{
    static const enum st_dtype kinds[] = {ST_F32, ST_BF16, ST_F16};

    if (!o->dtype || !strcmp(o->dtype, "fp32"))
        return ST_F32;
    if (!strcmp(o->dtype, "bf16"))
        return model_save_stays_fp32(t->name) ? ST_F32 : ST_BF16;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(t->dtype, st_dtype_name(kinds[i])))
            return kinds[i];
    return ST_F32;
}

/* Appends a tensor to the current shard, or to a new one where that is full. */
static void model_save_add_part(struct parts *p, struct model_save_part x, size_t limit, size_t *in_shard)
{
    if (p->n == 0 || (*in_shard && *in_shard + x.nbytes > limit)) {
        p->shards++;
        *in_shard = 0;
    }
    x.shard = p->shards - 1;
    *in_shard += x.nbytes;
    p->bytes += x.nbytes;
    p->v[p->n++] = x;
}

/* Ours in the order of the slab, then what is carried; a shard ends where the next tensor would exceed its size. */
static struct parts model_save_parts_of(const struct model *m, const struct safetensors *old,
                                        const struct model_save_options *o)
{
    size_t n_old = old ? st_count(old) : 0, in_shard = 0, limit = o->shard_bytes ? o->shard_bytes : SHARD_BYTES;
    struct parts p = {.v = xcalloc((size_t)m->n_tensors + n_old, sizeof *p.v)};

    for (int i = 0; i < m->n_tensors; i++) {
        const struct model_tensor *t = &m->tensors[i];
        struct model_save_part x = {.name = t->name, .dtype = model_save_dtype_of(t, o),
                                    .weights = m->weights + t->offset,
                                    .n = (size_t)t->rows * (size_t)t->cols};
        x.n_dims = model_tensor_shape(t, x.shape);
        x.nbytes = x.n * st_dtype_size(x.dtype);
        model_save_add_part(&p, x, limit, &in_shard);
    }
    for (size_t i = 0; i < n_old; i++) {
        const struct st_tensor *t = st_at(old, i);
        struct model_save_part x = {.name = t->name, .dtype = t->dtype, .n_dims = t->n_dims, .bytes = t->data,
                                    .n = t->n,
                                    .nbytes = t->nbytes};
        memcpy(x.shape, t->shape, sizeof x.shape);
        if (!model_save_is_ours(m, t->name))
            model_save_add_part(&p, x, limit, &in_shard);
    }
    return p;
}

/* Writes a tensor in a 16-bit dtype, piece by piece. */
static int model_save_write_half(struct st_writer *w, const struct model_save_part *x, struct err *e)
{
    uint16_t *to = xmalloc(CHUNK * sizeof *to);
    int rc = 0;

    for (size_t at = 0; at < x->n && rc == 0; at += CHUNK) {
        size_t n = x->n - at < CHUNK ? x->n - at : CHUNK;
        for (size_t i = 0; i < n; i++)
            to[i] = x->dtype == ST_BF16 ? bf16_from_f32(x->weights[at + i]) : f16_from_f32(x->weights[at + i]);
        rc = st_write(w, to, n * sizeof *to, e);
    }
    free(to);
    return rc;
}

/* Writes a tensor in its type. */
static int model_save_write_part(struct st_writer *w, const struct model_save_part *x, struct err *e)
{
    if (!x->weights)
        return st_write(w, x->bytes, x->nbytes, e);
    return x->dtype == ST_F32 ? st_write(w, x->weights, x->nbytes, e) : model_save_write_half(w, x, e);
}

static char *model_save_shard_name(const struct parts *p, int shard)
{
    return p->shards == 1 ? xstrdup("model.safetensors")
                          : xasprintf("model-%05d-of-%05d.safetensors", shard + 1, p->shards);
}

/* Writes the tensors of one shard. */
static int model_save_write_shard(const struct parts *p, int shard, const char *dir, struct err *e)
{
    char *name = model_save_shard_name(p, shard), *path = path_join(dir, name);
    struct st_writer *w = st_create(path, e);
    int rc = w ? 0 : -1;

    if (w)
        st_set_metadata(w, "format", "pt");
    for (size_t i = 0; i < p->n && rc == 0; i++)
        if (p->v[i].shard == shard)
            rc = st_declare(w, p->v[i].name, p->v[i].dtype, p->v[i].n_dims, p->v[i].shape, e);
    for (size_t i = 0; i < p->n && rc == 0; i++)
        if (p->v[i].shard == shard)
            rc = model_save_write_part(w, &p->v[i], e);
    if (w && rc < 0)
        st_abort(w);
    else if (w)
        rc = st_commit(w, e);
    free(name);
    free(path);
    return rc;
}

/* All shards, as many at once as there are threads. The first that fails is the call's error. */
static int model_save_write_shards(const struct parts *p, const char *dir, struct err *e)
{
    int failed = 0;

#pragma omp parallel for schedule(dynamic, 1)
    for (int k = 0; k < p->shards; k++) {
        struct err own = ERR_INIT;
        if (model_save_write_shard(p, k, dir, &own) == 0)
            continue;
#pragma omp critical
        if (!failed++ && e)
            *e = own;
    }
    return failed ? -1 : 0;
}

/* Writes model.safetensors.index.json. */
static int model_save_write_index(const struct parts *p, const char *path, struct err *e)
{
    json_t *map = json_object(), *o = json_pack("{s:{s:I},s:O}", "metadata", "total_size", (json_int_t)p->bytes,
                                                "weight_map", map);
    int rc;

    for (size_t i = 0; i < p->n; i++) {
        char *name = model_save_shard_name(p, p->v[i].shard);
        json_object_set_new(map, p->v[i].name, json_string(name));
        free(name);
    }
    rc = json_write(path, o, e);
    json_decref(map);
    json_decref(o);
    return rc;
}

/* Files of weights that the folder held before, in another number of shards. */
static void model_save_remove_stale(const struct parts *p, const char *dir)
{
    char **names;
    size_t n;

    if (dir_list(dir, &names, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        bool keep = strcmp(names[i], "model.safetensors") && fnmatch(SHARD_PATTERN, names[i], 0);
        for (int k = 0; k < p->shards && !keep; k++) {
            char *ours = model_save_shard_name(p, k);
            keep = !strcmp(ours, names[i]);
            free(ours);
        }
        char *path = path_join(dir, names[i]);
        if (!keep)
            remove(path);
        free(path);
    }
    names_free(names, n);
}

/* The index names its shards, so it is written when all are there. What the folder held before goes last. */
static int save_weights(const struct model *m, const char *dir, const struct model_save_options *o, struct err *e)
{
    struct safetensors *old = m->dir ? st_open(m->dir, NULL) : NULL;
    char *index = path_join(dir, "model.safetensors.index.json");
    struct parts p = model_save_parts_of(m, old, o);
    int rc = model_save_write_shards(&p, dir, e);

    if (rc == 0 && p.shards > 1)
        rc = model_save_write_index(&p, index, e);
    else if (rc == 0)
        remove(index);
    if (rc == 0)
        model_save_remove_stale(&p, dir);
    st_close(old);
    free(p.v);
    free(index);
    return rc;
}

/* Under either spelling of the key, at either level. */
static void model_save_say_dtype(json_t *o, const char *name)
{
    json_object_del(o, "torch_dtype"); /* of NULL: nothing happens */
    json_object_set_new(o, "dtype", json_string(name));
}

/* Writes config.json, with the dtype of the weights. */
static int model_save_config(const struct model *m, const char *dir, enum st_dtype dtype, struct err *e)
{
    const char *name = dtype == ST_BF16 ? "bfloat16" : dtype == ST_F16 ? "float16" : "float32";
    json_t *o = json_deep_copy(m->config.source);
    char *path = path_join(dir, "config.json");
    int rc;

    model_save_say_dtype(o, name);
    model_save_say_dtype(json_object_get(o, "text_config"), name);
    if (!json_object_get(o, "architectures"))
        json_object_set_new(o, "architectures", json_pack("[s]", model_architecture(o)));
    rc = json_write(path, o, e);
    json_decref(o);
    free(path);
    return rc;
}

/* Writes generation_config.json, with the model's ends. */
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
    if (m->config.max_new)
        json_object_set_new(o, "max_new_tokens", json_integer(m->config.max_new));
    rc = json_write(path, o, e);
    json_decref(ids);
    json_decref(o);
    free(from);
    free(path);
    return rc;
}

static bool model_save_holds(const char *dir, const char *name)
{
    char *path = path_join(dir, name);
    bool there = file_exists(path);

    free(path);
    return there;
}

static int model_save_remove_file(const char *path, struct err *e)
{
    return unlink(path) < 0 && errno != ENOENT ? err_sys(e, "cannot remove '%s'", path) : 0;
}

/* The folder may hold another model: its vocabulary's files are of no use to this one. */
static int model_save_carry_tokenizer(const struct model *m, const char *dir, struct err *e)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt",
                                        "special_tokens_map.json", "added_tokens.json", "chat_template.jinja",
                                        "chat_template.json"};
    bool any = false;
    int rc = 0;

    for (size_t i = 0; m->dir && i < sizeof names / sizeof names[0]; i++)
        any |= model_save_holds(m->dir, names[i]);
    for (size_t i = 0; any && i < sizeof names / sizeof names[0] && rc == 0; i++) {
        char *from = path_join(m->dir, names[i]), *to = path_join(dir, names[i]);
        if (!file_is_same(from, to))
            rc = file_exists(from) ? file_copy(from, to, e) : model_save_remove_file(to, e);
        free(from);
        free(to);
    }
    return rc;
}

/* What was trained is what the folder asks. Transformers looks into both files, old versions into the second alone. */
static int model_save_write_template(const struct model *m, const char *dir, struct err *e)
{
    char *jinja = path_join(dir, "chat_template.jinja"), *config = path_join(dir, "tokenizer_config.json");
    char *old = path_join(dir, "chat_template.json");
    const char *text = m->chat_template;
    json_t *o = text && file_exists(config) ? json_read_foreign(config, e) : json_object();
    int rc = o ? 0 : -1;

    if (text && rc == 0)
        rc = file_write(jinja, text, strlen(text), e);
    if (text && rc == 0 && file_exists(config)) {
        json_object_set_new(o, "chat_template", json_string(text));
        rc = json_write(config, o, e);
    }
    if (text && rc == 0)
        remove(old);
    json_decref(o);
    free(jinja), free(config), free(old);
    return rc;
}

static int model_save_check_dtype(const struct model_save_options *o, struct err *e)
{
    if (!o->dtype || !strcmp(o->dtype, "fp32") || !strcmp(o->dtype, "bf16") || !strcmp(o->dtype, "same"))
        return 0;
    return err_set(e, ERR_INPUT, "no type '%s' of weights; it is 'fp32', 'bf16' or 'same' (as they were loaded)",
                   o->dtype);
}

int model_save_as(const struct model *m, const char *dir, const struct model_save_options *o, struct err *e)
{
    if (model_save_check_dtype(o, e) < 0 || model_fetch(m, e) < 0 || dir_make(dir, e) < 0)
        return err_prefix(e, "saving model to '%s'", dir);
    folder_sweep(dir); /* what a killed save left */
    if (save_weights(m, dir, o, e) < 0 ||
        model_save_config(m, dir, model_save_dtype_of(&m->tensors[0], o), e) < 0 ||
        save_generation_config(m, dir, e) < 0 ||
        model_save_carry_tokenizer(m, dir, e) < 0 || model_save_write_template(m, dir, e) < 0)
        return err_prefix(e, "saving model to '%s'", dir);
    return 0;
}

int model_save(const struct model *m, const char *dir, struct err *e)
{
    return model_save_as(m, dir, &(struct model_save_options){0}, e);
}

/* ---- into a user's folder ---- */

/* What would be read as weights, and the command did not write, is moved aside. */
static int model_save_clear_weights(void *listing, const char *path, const char *name, struct err *e)
{
    (void)path;
    return strcmp(name, "model.safetensors") && strcmp(name, "model.safetensors.index.json") &&
           fnmatch(SHARD_PATTERN, name, 0) ? 0 : listing_put_aside(listing, name, e);
}

/* Fills a work folder, and moves its files to their places: what somebody has put there or edited stays. */
static int model_save_fill(struct listing *l, const char *dir, model_fill *fill, void *ctx, struct err *e)
{
    char *work = path_join(dir, ".unfinished");
    int rc = dir_remove(work, e) < 0 || dir_make(work, e) < 0 ? -1 : fill(ctx, work, e);

    if (rc == 0)
        rc = folder_flush(work, e) < 0 || listing_move(l, work, e) < 0 ||
             dir_each(dir, model_save_clear_weights, l, e) < 0 ? -1 : listing_end(l, false, NULL, e);
    else
        dir_remove(work, NULL);
    free(work);
    return rc;
}

int model_fill_folder(const char *dir, model_fill *fill, void *ctx, struct err *e)
{
    struct listing *l = NULL;
    int rc = dir_make(dir, e) < 0 ? -1 : listing_begin(dir, NULL, &l, e);

    if (rc == 0) {
        folder_sweep(dir);
        listing_allow_edits(l);
        rc = model_save_fill(l, dir, fill, ctx, e);
    }
    listing_free(l);
    return rc;
}

struct model_save_request {
    const struct model *m;
    const struct model_save_options *o;
};

static int model_save_requested(void *ctx, const char *work, struct err *e)
{
    const struct model_save_request *r = ctx;

    return model_save_as(r->m, work, r->o, e);
}

int model_save_for(const struct model *m, const char *dir, const struct model_save_options *o, struct err *e)
{
    struct model_save_request r = {m, o};

    if (model_save_check_dtype(o, e) < 0 || folder_claim(dir, FOLDER_MODEL, e) < 0)
        return -1;
    return model_fill_folder(dir, model_save_requested, &r, e);
}
