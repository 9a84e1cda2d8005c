/* tensors.c - one tensor of a safetensors file, as text that a task can hold: what a benchmark stored of its inputs. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "task/formats/format.h"

#define TENSORS_MAX_FILE (256u << 20) /* bytes; all of it is read */
#define TENSORS_MAX_ONE (1u << 20)    /* bytes of a tensor: a task has four MiB, and a row for each workload */
#define TENSORS_MAX_UP 8              /* folders above the definition in which the path may begin */

/* The file, in the definition's folder or one above it; owned, NULL if there is none. */
static char *tensors_find(const char *definition, const char *file)
{
    char *at = format_beside(definition, ""), *found, *up;

    for (int i = 0; i < TENSORS_MAX_UP; i++) {
        found = path_join(*at ? at : ".", file);
        if (file_exists(found) && !file_is_dir(found)) {
            free(at);
            return found;
        }
        free(found);
        up = path_join(*at ? at : ".", "..");
        free(at);
        at = up;
    }
    free(at);
    return NULL;
}

/* True for a relative path that does not leave its folder. */
static bool tensors_is_inside(const char *file)
{
    size_t n = strlen(file);

    return *file && *file != '/' && strncmp(file, "../", 3) && !strstr(file, "/../") &&
           (n < 3 || strcmp(file + n - 3, "/.."));
}

/* PyTorch's name of a safetensors dtype; NULL: there is none. */
static const char *tensors_dtype(const char *name)
{
    static const char *const names[][2] = {
        {"F64", "float64"}, {"F32", "float32"}, {"F16", "float16"}, {"BF16", "bfloat16"}, {"I64", "int64"},
        {"I32", "int32"}, {"I16", "int16"}, {"I8", "int8"}, {"U8", "uint8"}, {"BOOL", "bool"},
        {"F8_E4M3", "float8_e4m3fn"}, {"F8_E5M2", "float8_e5m2"}};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i][0]))
            return names[i][1];
    return NULL;
}

/* The tensor's place in the file's bytes, from its head's offsets. False: they do not lie in it. */
static bool tensors_place(const struct buf *b, const json_t *one, size_t head, size_t *from, size_t *n)
{
    const json_t *at = json_object_get(one, "data_offsets");
    int64_t begin = json_integer_value(json_array_get(at, 0)), end = json_integer_value(json_array_get(at, 1));

    if (begin < 0 || end < begin || (uint64_t)end > b->n - 8 - head)
        return false;
    *from = 8 + head + (size_t)begin;
    *n = (size_t)(end - begin);
    return true;
}

/* *ret is one tensor of a safetensors file, new: {"data": base64, "dtype", "shape"}. ERR_INPUT: it is missing,
 * broken or too large. */
static int tensors_take(const struct buf *b, const char *key, json_t **ret, struct err *e)
{
    uint64_t head = 0;
    size_t from, n;
    const char *dtype;
    json_t *all, *one;
    char *text;

    for (int i = 0; i < 8 && b->n >= 8; i++)
        head |= (uint64_t)(uint8_t)b->p[i] << (8 * i);
    if (b->n < 8 || head > b->n - 8)
        return err_set(e, ERR_INPUT, "no head of a safetensors file");
    all = json_loadb(b->p + 8, (size_t)head, JSON_REJECT_DUPLICATES, NULL);
    one = json_object_get(all, key);
    dtype = tensors_dtype(json_str(one, "dtype", ""));
    if (!dtype || !json_is_array(json_object_get(one, "shape")) || !tensors_place(b, one, (size_t)head, &from, &n)) {
        json_decref(all);
        return err_set(e, ERR_INPUT, "no tensor '%.80s' of a known type in it", key);
    }
    if (n > TENSORS_MAX_ONE) {
        json_decref(all);
        return err_set(e, ERR_INPUT, "'%.80s' has %zu bytes, more than the %u that a task can hold", key, n,
                       TENSORS_MAX_ONE);
    }
    text = base64_text(b->p + from, n);
    *ret = json_pack("{s:s,s:s,s:O}", "data", text, "dtype", dtype, "shape", json_object_get(one, "shape"));
    free(text);
    json_decref(all);
    return 0;
}

int format_tensor(const char *definition, const char *file, const char *key, json_t **ret, struct err *e)
{
    char *path = tensors_is_inside(file) ? tensors_find(definition, file) : NULL;
    struct buf b;
    int rc;

    if (!path)
        return err_set(e, ERR_INPUT, "its safetensors file '%.120s' is not below the benchmark's folder", file);
    buf_init(&b, TENSORS_MAX_FILE);
    rc = file_read(path, &b, e);
    if (rc == 0)
        rc = tensors_take(&b, key, ret, e);
    if (rc < 0)
        err_prefix(e, "'%.120s'", file);
    buf_free(&b);
    free(path);
    return rc;
}
