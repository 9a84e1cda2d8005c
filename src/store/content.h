/* content.h - an input is known by what it holds, not by its path. */
#ifndef MC_STORE_CONTENT_H
#define MC_STORE_CONTENT_H

#include <stdbool.h>

#include "base/err.h"

#define CONTENT_WHOLE ((size_t)256 << 20)

/* SHA-256 of a file, all of it. Of one above a MiB it is kept in the cache (sealed), under the file's path, device,
 * inode, size and times of change: it is read again when one of them is another. About 1 s for each 300 MB; a file of a
 * GiB is announced. ERR_INPUT where it is absent or no file. */
int content_hash_file(const char *path, char ret[65], struct err *e);

/* SHA-256 over names and contents. spec: files and folders, separated by commas; folders with all below them,
 * without dot files. All of each counts; files above CONTENT_WHOLE by content_hash_file. ERR_INPUT where something is
 * absent. */
int content_digest(const char *spec, char ret[65], struct err *e);
/* The same of a model folder: what models are read from, or carried over to the next, counts (weights with their index,
 * configuration, tokenizer, template), and a card or another file that somebody puts beside it does not. */
bool content_is_of_model(const char *name);
int content_digest_model(const char *spec, char ret[65], struct err *e);
/* The same of records: of a folder its own *.jsonl and *.parquet, but for what 'synth' holds out ("heldout..") and what
 * the judge convicted ("failed-.."). Whoever names such a file itself means it. */
bool content_is_of_records(const char *name);
int content_digest_records(const char *spec, char ret[65], struct err *e);
/* The same of one folder, whatever its name holds, but for the file 'without' directly in it. */
int content_digest_without(const char *folder, const char *without, char ret[65], struct err *e);

/* Of the states of all files of a folder (inode, size, times of change), which are others once anybody has changed one.
 * Reads none of them. */
int content_states(const char *folder, const char *without, char ret[65], struct err *e);

#endif
