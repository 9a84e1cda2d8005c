/* seal.h - what is kept is believed only if it is what was written, and under the name that it was written for: a
 * hash of both lies in each file, or beside the files of a folder. What does not match is dropped and said in the log,
 * so that whoever asked makes it again. An entry's name is its key: the last part of its path, and the folder of two
 * letters above it that artefact_path makes. A cache may be moved as a whole. */
#ifndef MC_STORE_SEAL_H
#define MC_STORE_SEAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"

#define SEAL_HEAD 80 /* bytes before the payload in a sealed file */

struct seal_part {
    const void *p;
    size_t n;
};

/* Begins the hash of an entry: its name is in it. The caller adds what the entry holds. */
void seal_start(struct sha256 *h, const char *path);

/* Writes the parts, one behind the other, by file_write. */
int seal_write(const char *path, const struct seal_part *parts, int n_parts, struct err *e);
/* Reads into out (initialised by the caller): SEAL_HEAD bytes, then the payload. False where there is no such
 * file, where it is larger than out->max, and where it is damaged: that one is removed. About 1 ms for each MB. */
bool seal_read(const char *path, struct buf *out);

/* Writes work/SHA256SUMS, as sha256sum does, of those of the named files (NULL ends them) that are there, and a comment
 * that holds the seal of the name dir, which the folder will have. */
int seal_folder(const char *work, const char *dir, const char *const *names, struct err *e);
/* Is all that was sealed there, unchanged, and the entry dir's? False without SHA256SUMS. Removes nothing. */
bool seal_folder_holds(const char *dir);

#endif
