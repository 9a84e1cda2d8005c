/* archive.h - the files of a .zip or .tar archive, one by one, for answers of several files.
 *
 * Foreign bytes: sizes are checked before anything is unpacked, and what is no plain file or folder (links, devices,
 * encrypted or split entries) is refused by name. Paths are given as they stand there; the taker refuses tricks. */
#ifndef MC_ARCHIVE_H
#define MC_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Called for each file in order; -1 ends it. data is borrowed. */
typedef int archive_take(const char *path, const char *data, size_t n, void *ctx, struct err *e);

bool archive_is_one(const char *path); /* by its name: .zip .tar .tar.gz .tgz */
/* max_bytes: of the archive, and of all its files together, unpacked. ERR_INPUT for what is broken or larger. */
int archive_each(const char *path, size_t max_bytes, archive_take *take, void *ctx, struct err *e);

#endif
