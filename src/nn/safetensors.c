/* safetensors.c - see safetensors.h. Format: https://github.com/huggingface/safetensors, section "Format". */
#include "nn/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/stamp.h"
#include "base/half.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"

#define ENDING ".safetensors" /* of shards: caches know a model by its files of this name (store/content.h) */

#define HEADER_MAX 100000000u /* as the reference implementation */
#define INDEX_NAME "model.safetensors.index.json"

static const struct {
    const char *name;
    size_t size;
} dtypes[ST_N_DTYPES] = {
    [ST_BOOL] = {"BOOL", 1},       [ST_U8] = {"U8", 1},   [ST_I8] = {"I8", 1},     [ST_F8_E5M2] = {"F8_E5M2", 1},
    [ST_F8_E4M3] = {"F8_E4M3", 1}, [ST_I16] = {"I16", 2}, [ST_U16] = {"U16", 2},   [ST_F16] = {"F16", 2},
    [ST_BF16] = {"BF16", 2},       [ST_I32] = {"I32", 4}, [ST_U32] = {"U32", 4},   [ST_F32] = {"F32", 4},
    [ST_F64] = {"F64", 8},         [ST_I64] = {"I64", 8}, [ST_U64] = {"U64", 8},
};

const char *st_dtype_name(enum st_dtype t)
{
    return dtypes[t].name;
}

size_t st_dtype_size(enum st_dtype t)
{
    return dtypes[t].size;
}

/* ---- conversion ---- */

/* A small float of exp_bits and man_bits, sign on top; no_inf: only the all-ones pattern is NaN (E4M3FN). */
static float safetensors_small_to_f32(unsigned x, int exp_bits, int man_bits, bool no_inf)
{
    unsigned man = x & ((1u << man_bits) - 1), exp = x >> man_bits & ((1u << exp_bits) - 1), top = (1u << exp_bits) - 1;
    float sign = x >> (exp_bits + man_bits) & 1 ? -1.0f : 1.0f;
    int bias = (1 << (exp_bits - 1)) - 1;

    if (exp == top && no_inf && man == (1u << man_bits) - 1)
        return NAN;
    if (exp == top && !no_inf)
        return man ? NAN : sign * INFINITY;
    if (exp == 0)
        return sign * ldexpf((float)man, 1 - bias - man_bits);
    return sign * ldexpf((float)(man | 1u << man_bits), (int)exp - bias - man_bits);
}

#define WORTH_THREADS ((size_t)1 << 20) /* elements: below, one thread has converted them before others start */

#define CONVERT(type, expr)                              \
    _Pragma("omp parallel for if (t->n > WORTH_THREADS)") \
    for (size_t i = 0; i < t->n; i++) {                  \
        type x;                                          \
        memcpy(&x, p + i * sizeof x, sizeof x);          \
        out[i] = (float)(expr);                          \
    }                                                    \
    break

void st_to_f32(const struct st_tensor *t, float *out)
{
    const unsigned char *p = t->data;

    switch (t->dtype) {
    case ST_F32: CONVERT(float, x);
    case ST_BF16: CONVERT(uint16_t, bf16_to_f32(x));
    case ST_F16: CONVERT(uint16_t, f16_to_f32(x));
    case ST_F8_E5M2: CONVERT(uint8_t, safetensors_small_to_f32(x, 5, 2, false));
    case ST_F8_E4M3: CONVERT(uint8_t, safetensors_small_to_f32(x, 4, 3, true));
    case ST_F64: CONVERT(double, x);
    case ST_I64: CONVERT(int64_t, x);
    case ST_U64: CONVERT(uint64_t, x);
    case ST_I32: CONVERT(int32_t, x);
    case ST_U32: CONVERT(uint32_t, x);
    case ST_I16: CONVERT(int16_t, x);
    case ST_U16: CONVERT(uint16_t, x);
    case ST_I8: CONVERT(int8_t, x);
    case ST_U8: CONVERT(uint8_t, x);
    case ST_BOOL: CONVERT(uint8_t, x != 0);
    case ST_N_DTYPES: break;
    }
}

/* ---- reading ---- */

struct safetensors_shard {
    char *path;
    unsigned char *map;
    size_t size;
    json_t *header;
};

struct safetensors {
    struct safetensors_shard *shards;
    size_t n_shards;
    struct st_tensor *tensors;
    size_t n, cap;
    const struct st_tensor **by_name;
};

/* ERR_INPUT naming file, tensor and what is wrong. Always -1. */
static int safetensors_bad(struct err *e, const struct safetensors_shard *sh, const char *name, const char *why)
{
    return err_set(e, ERR_INPUT, "'%s': tensor '%.200s' %s; the file is damaged", sh->path, name, why);
}

/* Maps a file. ERR_INPUT: it cannot be opened, or is too short. */
static int safetensors_map_file(struct safetensors_shard *sh, struct err *e)
{
    struct stat st;
    int fd = open(sh->path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) < 0) {
        err_sys(e, "cannot open '%s'", sh->path);
        if (fd >= 0)
            close(fd);
        if (e)
            e->kind = ERR_INPUT;
        return -1;
    }
    sh->size = (size_t)st.st_size;
    if (!S_ISREG(st.st_mode) || sh->size < 8) {
        close(fd);
        return err_set(e, ERR_INPUT, "'%s' is not a safetensors file; it has no header", sh->path);
    }
    sh->map = mmap(NULL, sh->size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (sh->map == MAP_FAILED) {
        sh->map = NULL;
        return err_sys(e, "cannot map '%s'", sh->path);
    }
    return 0;
}

/* The length of the shard's header, little endian in its first eight bytes. */
static size_t safetensors_header_size(const struct safetensors_shard *sh)
{
    uint64_t n = 0;

    for (int i = 7; i >= 0; i--)
        n = n << 8 | sh->map[i];
    return n > SIZE_MAX ? SIZE_MAX : (size_t)n;
}

/* Parses the file's header. ERR_INPUT: it is broken. */
static int safetensors_parse_header(struct safetensors_shard *sh, struct err *e)
{
    size_t n = safetensors_header_size(sh);

    if (n > HEADER_MAX)
        return err_set(e, ERR_INPUT, "'%s' is not a safetensors file; its header would have %zu bytes", sh->path, n);
    if (n > sh->size - 8)
        return err_set(e, ERR_INPUT, "'%s' ends inside its header; the file is cut off", sh->path);
    if (n == 0 || sh->map[8] != '{')
        return err_set(e, ERR_INPUT, "'%s' is not a safetensors file; its header is not a JSON object", sh->path);
    if (!(sh->header = json_parse((char *)sh->map + 8, n, sh->path, e)))
        return -1;
    return json_is_object(sh->header) ? 0 : err_set(e, ERR_INPUT, "'%s' has no JSON object as header", sh->path);
}

/* ERR_INPUT where __metadata__ is not an object of texts. */
static int safetensors_check_metadata(const struct safetensors_shard *sh, struct err *e)
{
    json_t *meta = json_object_get(sh->header, "__metadata__"), *v;
    const char *key;

    if (meta && !json_is_object(meta))
        return err_set(e, ERR_INPUT, "'%s': '__metadata__' is not an object; the file is damaged", sh->path);
    json_object_foreach(meta, key, v)
        if (!json_is_string(v))
            return err_set(e, ERR_INPUT, "'%s': metadata '%.200s' is not a string", sh->path, key);
    return 0;
}

/* -1 for a name that is none. */
static int safetensors_parse_dtype(const json_t *v, enum st_dtype *ret)
{
    const char *s = json_string_value(v);

    for (int i = 0; s && i < ST_N_DTYPES; i++)
        if (!strcmp(s, dtypes[i].name)) {
            *ret = (enum st_dtype)i;
            return 0;
        }
    return -1;
}

/* Reads dimensions and the number of elements; -1: not a shape of ours. */
static int safetensors_parse_shape(const json_t *v, struct st_tensor *t)
{
    if (!json_is_array(v) || json_array_size(v) > ST_MAX_DIMS)
        return -1;
    t->n_dims = (int)json_array_size(v);
    t->n = 1;
    for (int i = 0; i < t->n_dims; i++) {
        json_t *d = json_array_get(v, (size_t)i);
        t->shape[i] = json_integer_value(d);
        if (!json_is_integer(d) || t->shape[i] < 0 || __builtin_mul_overflow(t->n, (size_t)t->shape[i], &t->n))
            return -1;
    }
    return __builtin_mul_overflow(t->n, dtypes[t->dtype].size, &t->nbytes) ? -1 : 0;
}

/* Fills *t, which borrows from the header. ERR_INPUT: it does not fit the file. */
static int safetensors_parse_tensor(const struct safetensors_shard *sh, const char *name, const json_t *v,
                                    struct st_tensor *t, struct err *e)
{
    size_t base = 8 + safetensors_header_size(sh), room = sh->size - base;
    json_t *off = json_object_get(v, "data_offsets"), *from, *to;
    json_int_t a, b;

    memset(t, 0, sizeof *t);
    t->name = name;
    if (!json_is_object(v))
        return safetensors_bad(e, sh, name, "is not described by an object");
    if (safetensors_parse_dtype(json_object_get(v, "dtype"), &t->dtype) < 0) {
        const char *d = json_str(v, "dtype", NULL);
        return err_set(e, ERR_INPUT, "'%s': tensor '%.200s' has dtype '%.40s', which we do not know; convert the file",
                       sh->path, name, d ? d : "(none)");
    }
    if (safetensors_parse_shape(json_object_get(v, "shape"), t) < 0)
        return safetensors_bad(e, sh, name, "has no valid shape (at most 8 sizes, not negative)");
    from = json_array_get(off, 0);
    to = json_array_get(off, 1);
    if (json_array_size(off) != 2 || !json_is_integer(from) || !json_is_integer(to))
        return safetensors_bad(e, sh, name, "has no valid data_offsets");
    a = json_integer_value(from);
    b = json_integer_value(to);
    if (a < 0 || b < a)
        return safetensors_bad(e, sh, name, "has no valid data_offsets");
    if ((uint64_t)b > room)
        return err_set(e, ERR_INPUT, "'%s' ends before the data of tensor '%.200s'; the file is cut off", sh->path,
                       name);
    if ((uint64_t)(b - a) != t->nbytes)
        return safetensors_bad(e, sh, name, "has data_offsets that do not fit its dtype and shape");
    t->data = sh->map + base + a;
    return 0;
}

/* qsort: by place in the file; empty tensors first. */
static int safetensors_by_offset(const void *a, const void *b)
{
    const struct st_tensor *x = a, *y = b;
    uintptr_t p = (uintptr_t)x->data, q = (uintptr_t)y->data;

    if (p != q)
        return p < q ? -1 : 1;
    if (x->nbytes != y->nbytes)
        return x->nbytes < y->nbytes ? -1 : 1; /* empty tensors first */
    return strcmp(x->name, y->name);
}

/* The data of one file must be covered exactly, without holes and without overlaps. */
static int safetensors_check_cover(const struct safetensors_shard *sh, struct st_tensor *t, size_t n, struct err *e)
{
    const unsigned char *at = sh->map + 8 + safetensors_header_size(sh), *end = sh->map + sh->size;

    qsort(t, n, sizeof *t, safetensors_by_offset);
    for (size_t i = 0; i < n; i++) {
        if (t[i].data != at)
            return safetensors_bad(e, sh, t[i].name, (const unsigned char *)t[i].data < at ? "overlaps another one"
                                                                                           : "leaves a hole before its "
                                                                                             "data");
        at += t[i].nbytes;
    }
    if (at != end)
        return err_set(e, ERR_INPUT, "'%s' has %zu bytes behind its last tensor; the file is damaged", sh->path,
                       (size_t)(end - at));
    return 0;
}

/* Maps a file and adds its tensors. */
static int safetensors_load_shard(struct safetensors *s, struct safetensors_shard *sh, struct err *e)
{
    size_t first = s->n;
    const char *name;
    json_t *v;

    if (safetensors_map_file(sh, e) < 0 || safetensors_parse_header(sh, e) < 0 || safetensors_check_metadata(sh, e) < 0)
        return -1;
    json_object_foreach(sh->header, name, v) {
        if (!strcmp(name, "__metadata__"))
            continue;
        if (s->n == s->cap) {
            s->cap = s->cap ? 2 * s->cap : 64;
            s->tensors = xrealloc(s->tensors, s->cap * sizeof *s->tensors);
        }
        if (safetensors_parse_tensor(sh, name, v, &s->tensors[s->n], e) < 0)
            return -1;
        s->n++;
    }
    return safetensors_check_cover(sh, s->tensors + first, s->n - first, e);
}

static int safetensors_cmp_names(const void *a, const void *b)
{
    return strcmp((*(const struct st_tensor *const *)a)->name, (*(const struct st_tensor *const *)b)->name);
}

/* Makes the index by name. ERR_INPUT: a tensor stands twice. */
static int safetensors_build_names(struct safetensors *s, struct err *e)
{
    s->by_name = xmalloc((s->n + 1) * sizeof *s->by_name);
    for (size_t i = 0; i < s->n; i++)
        s->by_name[i] = &s->tensors[i];
    qsort(s->by_name, s->n, sizeof *s->by_name, safetensors_cmp_names);
    for (size_t i = 1; i < s->n; i++)
        if (!strcmp(s->by_name[i]->name, s->by_name[i - 1]->name))
            return err_set(e, ERR_INPUT, "tensor '%.200s' is in two files of the model", s->by_name[i]->name);
    return 0;
}

/* A new shard of that path, which is taken; it moves with the next one. */
static struct safetensors_shard *safetensors_add_shard(struct safetensors *s, char *path)
{
    s->shards = xrealloc(s->shards, (s->n_shards + 1) * sizeof *s->shards);
    memset(&s->shards[s->n_shards], 0, sizeof *s->shards);
    s->shards[s->n_shards].path = path;
    return &s->shards[s->n_shards++];
}

static bool safetensors_knows_shard(const struct safetensors *s, const char *path)
{
    for (size_t i = 0; i < s->n_shards; i++)
        if (!strcmp(s->shards[i].path, path))
            return true;
    return false;
}

/* True where the tensor's bytes lie in that file. */
static bool safetensors_in_shard(const struct safetensors *s, const struct st_tensor *t, const char *path)
{
    for (size_t i = 0; i < s->n_shards; i++) {
        const struct safetensors_shard *sh = &s->shards[i];
        if (!strcmp(sh->path, path))
            return (const unsigned char *)t->data >= sh->map && (const unsigned char *)t->data <= sh->map + sh->size;
    }
    return false;
}

/* Adds a shard for each file that an index names. */
static int safetensors_load_map(struct safetensors *s, const char *index, const char *dir, const json_t *map,
                                struct err *e)
{
    const char *name;
    json_t *v;
    int rc = 0;

    json_object_foreach((json_t *)map, name, v) {
        const char *file = json_string_value(v);
        char *path;
        size_t n = file ? strlen(file) : 0;
        if (!n || strchr(file, '/') || n < sizeof ENDING || strcmp(file + n - strlen(ENDING), ENDING))
            return err_set(e, ERR_INPUT, "'%s': tensor '%.200s' has no plain name of a " ENDING " file", index, name);
        path = path_join(dir, file);
        if (safetensors_knows_shard(s, path))
            free(path);
        else if (safetensors_load_shard(s, safetensors_add_shard(s, path), e) < 0)
            return -1;
    }
    if (safetensors_build_names(s, e) < 0)
        return -1;
    json_object_foreach((json_t *)map, name, v) {
        char *path = path_join(dir, json_string_value(v));
        const struct st_tensor *t = st_find(s, name);
        if (!t || !safetensors_in_shard(s, t, path))
            rc = err_set(e, ERR_INPUT, "'%s' names tensor '%.200s', which is not in '%s'", index, name, path);
        free(path);
        if (rc < 0)
            break;
    }
    return rc;
}

/* Loads all shards of an index file. */
static int safetensors_load_index(struct safetensors *s, const char *index, struct err *e)
{
    char *dir = path_folder(index);
    json_t *doc = json_read(index, e), *map = json_object_get(doc, "weight_map");
    int rc = -1;

    if (doc && !json_is_object(map))
        err_set(e, ERR_INPUT, "'%s' has no 'weight_map'; it is not a safetensors index", index);
    else if (doc)
        rc = safetensors_load_map(s, index, dir, map, e);
    json_decref(doc);
    free(dir);
    return rc;
}

/* Opens a file, an index, or a folder that has either. */
static int safetensors_open_path(struct safetensors *s, const char *path, struct err *e)
{
    char *single, *index;
    int rc;

    if (!file_is_dir(path)) {
        if (text_ends(path, ".json"))
            return safetensors_load_index(s, path, e);
        return safetensors_load_shard(s, safetensors_add_shard(s, xstrdup(path)), e) < 0 ? -1
               : safetensors_build_names(s, e);
    }
    single = path_join(path, "model.safetensors");
    index = path_join(path, INDEX_NAME);
    if (file_exists(single))
        rc = safetensors_open_path(s, single, e);
    else if (file_exists(index))
        rc = safetensors_load_index(s, index, e);
    else
        rc = err_set(e, ERR_INPUT, "'%s' has neither model.safetensors nor " INDEX_NAME "; is it a model folder?",
                     path);
    free(single);
    free(index);
    return rc;
}

struct safetensors *st_open(const char *path, struct err *e)
{
    struct safetensors *s = xcalloc(1, sizeof *s);

    if (safetensors_open_path(s, path, e) == 0)
        return s;
    st_close(s);
    return NULL;
}

void st_close(struct safetensors *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_shards; i++) {
        if (s->shards[i].map)
            munmap(s->shards[i].map, s->shards[i].size);
        json_decref(s->shards[i].header);
        free(s->shards[i].path);
    }
    free(s->shards);
    free(s->tensors);
    free(s->by_name);
    free(s);
}

size_t st_count(const struct safetensors *s)
{
    return s->n;
}

const struct st_tensor *st_at(const struct safetensors *s, size_t i)
{
    return &s->tensors[i];
}

const struct st_tensor *st_find(const struct safetensors *s, const char *name)
{
    size_t lo = 0, hi = s->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(s->by_name[mid]->name, name);
        if (c == 0)
            return s->by_name[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static const json_t *safetensors_metadata(const struct safetensors *s)
{
    return s->n_shards ? json_object_get(s->shards[0].header, "__metadata__") : NULL;
}

const char *st_metadata(const struct safetensors *s, const char *key)
{
    return json_string_value(json_object_get(safetensors_metadata(s), key));
}

size_t st_metadata_count(const struct safetensors *s)
{
    return json_object_size(safetensors_metadata(s));
}

/* ---- writing ---- */

struct st_writer {
    char *path, *tmp;
    FILE *f;
    json_t *header;
    size_t declared, written; /* bytes of tensor data */
    bool started;             /* the header is out */
};

struct st_writer *st_create(const char *path, struct err *e)
{
    struct st_writer *w;

    if (stamp_check_links(path, e) < 0)
        return NULL;
    if (file_is_special(path)) {
        err_set(e, ERR_INPUT, "'%s' is no plain file; name one for tensors", path);
        return NULL;
    }
    w = xcalloc(1, sizeof *w);
    w->path = xstrdup(path);
    w->tmp = file_temporary(path);
    w->header = json_object();
    if (!(w->f = fopen(w->tmp, "wbe"))) {
        err_sys(e, "cannot create '%s'", path);
        st_abort(w);
        return NULL;
    }
    return w;
}

void st_set_metadata(struct st_writer *w, const char *key, const char *value)
{
    json_t *m = json_object_get(w->header, "__metadata__");

    if (!m) {
        m = json_object();
        json_object_set_new(w->header, "__metadata__", m);
    }
    json_object_set_new(m, key, json_utf8(value, strlen(value)));
}

int st_declare(struct st_writer *w, const char *name, enum st_dtype dtype, int n_dims, const int64_t *shape,
               struct err *e)
{
    size_t nbytes = dtypes[dtype].size;
    json_t *v, *dims;

    if (w->started)
        return err_set(e, ERR_BUG, "tensor '%s' is declared after writing began", name);
    if (!strcmp(name, "__metadata__") || json_object_get(w->header, name))
        return err_set(e, ERR_BUG, "tensor '%s' is declared twice", name);
    if (n_dims < 0 || n_dims > ST_MAX_DIMS)
        return err_set(e, ERR_BUG, "tensor '%s' has %d dimensions", name, n_dims);
    dims = json_array();
    for (int i = 0; i < n_dims; i++) {
        json_array_append_new(dims, json_integer(shape[i]));
        if (shape[i] < 0 || __builtin_mul_overflow(nbytes, (size_t)shape[i], &nbytes)) {
            json_decref(dims);
            return err_set(e, ERR_BUG, "tensor '%s' has an impossible shape", name);
        }
    }
    v = json_pack("{s:s,s:o,s:[I,I]}", "dtype", dtypes[dtype].name, "shape", dims, "data_offsets",
                  (json_int_t)w->declared, (json_int_t)(w->declared + nbytes));
    if (!v || json_object_set_new(w->header, name, v) < 0)
        return err_set(e, ERR_BUG, "tensor name '%s' is not UTF-8", name);
    w->declared += nbytes;
    return 0;
}

/* Appends bytes to the file. */
static int safetensors_put(struct st_writer *w, const void *p, size_t n, struct err *e)
{
    if (n && fwrite(p, 1, n, w->f) != n)
        return err_sys(e, "cannot write '%s'", w->path);
    return 0;
}

/* Writes the header; tensors follow in the order in which they were declared. */
static int safetensors_start(struct st_writer *w, struct err *e)
{
    char *text = json_text(w->header);
    size_t n = strlen(text), padded = (n + 7) / 8 * 8;
    unsigned char len[8];
    int rc;

    for (int i = 0; i < 8; i++)
        len[i] = (unsigned char)((uint64_t)padded >> 8 * i);
    w->started = true;
    rc = safetensors_put(w, len, 8, e) < 0 || safetensors_put(w, text, n, e) < 0 ||
        safetensors_put(w, "       ", padded - n, e) < 0 ? -1 : 0;
    free(text);
    return rc;
}

int st_write(struct st_writer *w, const void *data, size_t nbytes, struct err *e)
{
    if (!w->started && safetensors_start(w, e) < 0)
        return -1;
    if (nbytes > w->declared - w->written)
        return err_set(e, ERR_BUG, "more data than declared for '%s'", w->path);
    w->written += nbytes;
    return safetensors_put(w, data, nbytes, e);
}

int st_commit(struct st_writer *w, struct err *e)
{
    int rc = w->started ? 0 : safetensors_start(w, e);

    if (rc == 0 && w->written != w->declared)
        rc = err_set(e, ERR_BUG, "'%s' lacks %zu declared bytes", w->path, w->declared - w->written);
    if (rc == 0 && (fflush(w->f) != 0 || fsync(fileno(w->f)) < 0))
        rc = err_sys(e, "cannot write '%s'", w->path);
    if (rc == 0) {
        int c = fclose(w->f);
        w->f = NULL;
        if (c != 0)
            rc = err_sys(e, "cannot write '%s'", w->path);
        else if (rename(w->tmp, w->path) < 0)
            rc = err_sys(e, "cannot replace '%s'", w->path);
    }
    st_abort(w); /* after the rename there is nothing left to unlink */
    return rc;
}

void st_abort(struct st_writer *w)
{
    if (!w)
        return;
    if (w->f)
        fclose(w->f);
    unlink(w->tmp);
    json_decref(w->header);
    free(w->path);
    free(w->tmp);
    free(w);
}
