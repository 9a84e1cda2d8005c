/* shards.h - a data set as files: JSON Lines, in shards, read by blocks of whole lines so that memory holds one
 * block. */
#ifndef MC_TRAIN_SHARDS_H
#define MC_TRAIN_SHARDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* spec: files and folders, separated by commas; a folder stands for its *.jsonl in order of their names, without
 * heldout*.jsonl and failed-*.jsonl. ERR_INPUT names what is absent, a folder without shards, and Parquet, with the
 * remedy. names_free frees the result; *ret_bytes may be NULL. */
int shards_list(const char *spec, char ***ret_files, size_t *ret_n, uint64_t *ret_bytes, struct err *e);

struct shard_line {
    const char *p; /* without its end; not empty */
    size_t n, number; /* number: in the file, from 1 */
};
/* f gets a block's lines at a time (about 16 MB), in order. A last line without its end that is no JSON is left out
 * with a warning: it was being written. */
int shards_each(const char *file, int (*f)(void *ctx, const struct shard_line *lines, size_t n, struct err *e),
                void *ctx, struct err *e);

#endif
