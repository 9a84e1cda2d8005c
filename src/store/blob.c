/* blob.c - see blob.h. A row for each kind of place; the bytes are checked here, whatever the place said. */
#include "store/blob.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/mem.h"
#include "store/blob_s3.h"
#include "store/limit.h"
#include "store/store.h"

static bool blob_is_s3(const char *place)
{
    return !strncmp(place, "s3://", 5);
}

int blob_check(const char *place, struct err *e)
{
    if (blob_is_s3(place))
        return blob_s3_check(place, e);
    if (strstr(place, "://"))
        return err_set(e, ERR_INPUT, "'%s' is no place for artefacts; give a folder, or s3://BUCKET/PREFIX", place);
    return folder_claim(place, "these artefacts", e); /* old files in it are swept */
}

/* Hosts and threads may put the same bytes at the same time, and process numbers repeat between containers: each
 * writes a file of its own. What lies there already is replaced: it may be damaged. */
static int blob_file_put(const char *folder, const void *data, size_t n, const char *sha256, struct err *e)
{
    char *path = artefact_path(folder, sha256, ""), *own;
    uint64_t any = 0;
    int rc;

    (void)!getrandom(&any, sizeof any, 0);
    own = xasprintf("%s.%016llx", path, (unsigned long long)any);
    rc = file_write(own, data, n, e);
    if (rc == 0 && rename(own, path) < 0)
        rc = err_sys(e, "cannot replace '%s'", path);
    if (rc < 0)
        unlink(own);
    free(own);
    free(path);
    return rc;
}

/* Appends the artefact's bytes from a folder. */
static int blob_file_get(const char *folder, const char *sha256, struct buf *out, struct err *e)
{
    char *path = artefact_path(folder, sha256, "");
    int rc = file_read(path, out, e);

    free(path);
    return rc;
}

int blob_tidy(const char *place, uint64_t bytes, double keep_s, double every_s, struct err *e)
{
    const struct cache_limit l = {
        .bytes = bytes, .grace_s = CACHE_GRACE_S, .every_s = every_s, .keep_s = keep_s, .by_content = true};
    static const char *const whole[] = {".", NULL};
    struct cache_trimmed done;

    return blob_is_s3(place) ? 0 : cache_trim(place, whole, &l, 0, &done, e);
}

int blob_put(const char *place, const void *data, size_t n, const char sha256[65], struct err *e)
{
    return blob_is_s3(place) ? blob_s3_put(place, data, n, sha256, e) : blob_file_put(place, data, n, sha256, e);
}

int blob_get(const char *place, const char sha256[65], struct buf *out, struct err *e)
{
    size_t had = out->n;
    char sha[65];

    if ((blob_is_s3(place) ? blob_s3_get(place, sha256, out, e) : blob_file_get(place, sha256, out, e)) < 0)
        return -1;
    sha256_hex(out->p + had, out->n - had, sha);
    if (strcmp(sha, sha256))
        return err_set(e, ERR_ENV, "artefact %.16s in '%s' is damaged: its bytes are those of %.16s", sha256, place,
                       sha);
    return 0;
}
