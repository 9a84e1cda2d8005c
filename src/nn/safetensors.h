/* safetensors.h - tensors in Hugging Face's safetensors format: a mapped reader and a streamed, atomic writer.
 *
 * File: u64 little-endian header length N, N bytes of JSON {"name":{"dtype","shape","data_offsets":[from,to]},
 * "__metadata__":{str:str}}, then the data. We refuse what the format forbids: a header beyond the file or over 100 MB,
 * offsets outside the data, holes, overlaps, bytes behind the last tensor, a size that is not shape x dtype, duplicate
 * names, dtypes we do not know. Tensor data stays in the mapping: nothing is read before it is touched. */
#ifndef MC_NN_SAFETENSORS_H
#define MC_NN_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ST_MAX_DIMS 8

enum st_dtype {
    ST_BOOL, ST_U8, ST_I8, ST_F8_E5M2, ST_F8_E4M3, ST_I16, ST_U16, ST_F16, ST_BF16, ST_I32, ST_U32, ST_F32,
    ST_F64, ST_I64, ST_U64, ST_N_DTYPES
};
const char *st_dtype_name(enum st_dtype t);  /* "BF16", as files spell it */
size_t st_dtype_size(enum st_dtype t);       /* bytes of one element */

struct st_tensor {
    const char *name;
    enum st_dtype dtype;
    int n_dims;
    int64_t shape[ST_MAX_DIMS];
    size_t n;         /* elements */
    size_t nbytes;
    const void *data; /* in the mapping; the format does not promise alignment, so read through st_to_f32 or memcpy */
};

struct safetensors; /* owns the mappings and names; every pointer below dies with st_close */

/* path is a .safetensors file, a model.safetensors.index.json, or a model folder holding either. NULL on error.
 * Shards: every name of the index must be in its shard, and no name twice. */
struct safetensors *st_open(const char *path, struct err *e);
void st_close(struct safetensors *s); /* NULL is fine */

size_t st_count(const struct safetensors *s);
const struct st_tensor *st_at(const struct safetensors *s, size_t i);              /* in order of file, then offset */
const struct st_tensor *st_find(const struct safetensors *s, const char *name);    /* NULL when absent */
const char *st_metadata(const struct safetensors *s, const char *key);             /* of the first file; NULL */
size_t st_metadata_count(const struct safetensors *s);

/* out: t->n floats. Every dtype converts (BOOL to 0/1, integers and F64 rounded to nearest). */
void st_to_f32(const struct st_tensor *t, float *out);

/* Writing: create, set metadata, declare all tensors, then stream their bytes in the order of declaration (any number
 * of st_write calls; they need not end at tensor borders), then st_commit, which fsyncs and renames over 'path'.
 * Until then readers see the old file. st_abort removes the unfinished one; after a failed call only st_abort is legal.
 * The header is padded so that tensor data starts 8-byte aligned. */
struct st_writer;
struct st_writer *st_create(const char *path, struct err *e);
void st_set_metadata(struct st_writer *w, const char *key, const char *value);
int st_declare(struct st_writer *w, const char *name, enum st_dtype dtype, int n_dims, const int64_t *shape,
               struct err *e);
int st_write(struct st_writer *w, const void *data, size_t nbytes, struct err *e);
int st_commit(struct st_writer *w, struct err *e); /* frees w, also on failure (then as st_abort) */
void st_abort(struct st_writer *w);

#endif
