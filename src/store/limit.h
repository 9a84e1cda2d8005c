/* limit.h - a bound for the cache folder: what was used longest ago goes first.
 *
 * Folders of artefacts hold entries: files or folders named by content, 'KEY' or 'KEY.suffix', with 'KEY.lock' beside
 * them (lock_file), directly or one level down in folders of two letters. An entry's last use is the newest time of
 * change of anything in it, so readers touch what they use. Any number of processes may use, make and trim at once:
 * - an entry used within the last grace_s stays, even above the limit: a path just handed out remains valid;
 * - an entry whose lock is held stays; the trimmer holds the lock itself while it removes one;
 * - an entry disappears by one rename, so nobody sees a part of it. */
#ifndef MC_STORE_LIMIT_H
#define MC_STORE_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct cache_limit {
    uint64_t bytes;  /* on disk, for all folders together; 0: no limit */
    double grace_s;  /* see above */
    double every_s;  /* a call sooner after the last trimming, by whatever process, does nothing */
    double keep_s;   /* what was used longer ago goes, however little there is; 0: no such limit */
    bool by_content; /* entries are files ab/cdef.. of SHA-256 alone: whatever else lies there is somebody's */
};

#define CACHE_GRACE_S 3600.0
#define CACHE_EVERY_S 600.0

struct cache_entry {
    char *path; /* owned */
    uint64_t bytes;
    double used; /* seconds since the epoch */
};

struct cache_trimmed {
    bool looked;            /* false: too soon, or another process is at it */
    uint64_t before, after; /* bytes of all entries */
    size_t removed;
};

/* Pure: sorts v by age, oldest first, and returns how many of the first ones go so that the rest holds at most 9/10 of
 * the limit (so that trimming is rare); 0 if all hold no more than the limit. What was used after 'newest' stays. */
size_t cache_choose(struct cache_entry *v, size_t n, uint64_t limit, double newest);

/* Trims root/folders[i] (NULL ends them; absent ones are fine). root/.trimmed remembers when, and is the lock of those
 * who trim. 'other' bytes of the limit are used by something else under root. Nothing else under root is touched, nor
 * what has no key for its name, and links are removed, never followed. */
int cache_trim(const char *root, const char *const *folders, const struct cache_limit *l, uint64_t other,
               struct cache_trimmed *ret, struct err *e);

/* Marks a file or folder of a cache as used now; no error if it is gone. */
void cache_touch(const char *path);

#endif
