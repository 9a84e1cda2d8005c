/* content.h - an input is known by what it holds, not by its path. */
#ifndef MC_CONTENT_H
#define MC_CONTENT_H

#include "base/err.h"

#define CONTENT_WHOLE ((size_t)256 << 20)

/* SHA-256 over names and contents. spec: files and folders, separated by commas; folders with all below them,
 * without dot files. A file above CONTENT_WHOLE counts by its size and 256 pieces of 64 KiB, spread evenly, with
 * both its ends. ERR_INPUT where something is absent. About 1 s for each 256 MiB. */
int content_digest(const char *spec, char ret[65], struct err *e);
/* The same of one folder, whatever its name holds, but for the file 'without' directly in it. */
int content_digest_without(const char *folder, const char *without, char ret[65], struct err *e);

#endif
