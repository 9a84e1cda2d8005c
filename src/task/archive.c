/* archive.c - see archive.h. Zip by its central directory, tar block by block; zlib unpacks. */
#include "task/archive.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/text.h"

struct archive {
    const char *name; /* for messages */
    const unsigned char *p;
    size_t n, left; /* left: bytes that may still be unpacked */
    archive_take *take;
    void *ctx;
};

bool archive_is_one(const char *path)
{
    return path_ends(path, ".zip") || path_ends(path, ".tar") || path_ends(path, ".tar.gz") ||
           path_ends(path, ".tgz");
}

/* ERR_INPUT naming the archive. Always -1. */
static int archive_broken(const struct archive *a, const char *what, struct err *e)
{
    return err_set(e, ERR_INPUT, "archive '%s' is broken: %s", a->name, what);
}

/* Hands a file on, within what is left of the limit. */
static int archive_give(struct archive *a, const char *path, const void *data, size_t n, struct err *e)
{
    if (n > a->left)
        return err_set(e, ERR_INPUT, "archive '%s' holds too much: '%.200s' goes over the limit", a->name, path);
    a->left -= n;
    return a->take(path, data, n, a->ctx, e);
}

/* window: zlib's windowBits, -15 for raw bytes, 31 for gzip. *ret is new; at most max bytes. */
static int archive_inflate(const struct archive *a, const void *data, size_t n, int window, size_t max,
                           struct buf *ret, struct err *e)
{
    z_stream z = {.next_in = (unsigned char *)data, .avail_in = (unsigned)n};
    unsigned char chunk[65536];
    int state = inflateInit2(&z, window) == Z_OK ? Z_OK : Z_MEM_ERROR;

    buf_init(ret, max);
    while (state == Z_OK && !ret->cut) {
        z.next_out = chunk;
        z.avail_out = sizeof chunk;
        state = inflate(&z, Z_NO_FLUSH);
        if (state == Z_OK || state == Z_STREAM_END)
            buf_add(ret, chunk, sizeof chunk - z.avail_out);
    }
    inflateEnd(&z);
    if (state == Z_STREAM_END && !ret->cut)
        return 0;
    buf_free(ret);
    return state == Z_OK || state == Z_STREAM_END ?
        err_set(e, ERR_INPUT, "archive '%s' holds more than %zu bytes", a->name, max)
         : archive_broken(a, "its compressed bytes do not unpack", e);
}

/* ---- zip ---- */

static uint32_t archive_u16(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t archive_u32(const unsigned char *p)
{
    return archive_u16(p) | archive_u16(p + 2) << 16;
}

struct archive_entry {
    char path[1024];
    unsigned flags, method, mode;
    size_t packed, size, at;
};

/* Hands one entry of a ZIP, unpacked, to the caller's function. ERR_INPUT: the archive is broken. */
static int archive_zip_give(struct archive *a, const struct archive_entry *x, struct err *e)
{
    const unsigned char *local = a->p + x->at;
    size_t at;
    struct buf text;
    int rc;

    if (x->at + 30 > a->n || archive_u32(local) != 0x04034b50)
        return archive_broken(a, "an entry has no header", e);
    at = x->at + 30 + archive_u16(local + 26) + archive_u16(local + 28);
    if (at > a->n || x->packed > a->n - at)
        return archive_broken(a, "an entry ends behind the file", e);
    if (x->method == 0)
        return archive_give(a, x->path, a->p + at, x->packed, e);
    if (x->method != 8)
        return err_set(e, ERR_INPUT, "archive '%s': '%.200s' is compressed by method %u; use deflate", a->name, x->path,
                       x->method);
    if (archive_inflate(a, a->p + at, x->packed, -15, a->left, &text, e) < 0)
        return -1;
    rc = text.n == x->size ? archive_give(a, x->path, text.p, text.n, e)
       : archive_broken(a, "an entry has another size than it says", e);
    buf_free(&text);
    return rc;
}

/* Reads an entry of the directory at p; folders are left out, encrypted ones and links refused. */
static int archive_zip_entry(struct archive *a, const unsigned char *p, struct err *e)
{
    struct archive_entry x = {.flags = archive_u16(p + 8), .method = archive_u16(p + 10),
                              .packed = archive_u32(p + 20), .size = archive_u32(p + 24),
                              .mode = archive_u32(p + 38) >> 16, .at = archive_u32(p + 42)};

    snprintf(x.path, sizeof x.path, "%.*s", (int)archive_u16(p + 28), (const char *)p + 46);
    if (text_ends(x.path, "/"))
        return 0;
    if (x.flags & 1)
        return err_set(e, ERR_INPUT, "archive '%s': '%.200s' is encrypted", a->name, x.path);
    if ((x.mode & S_IFMT) && !S_ISREG(x.mode))
        return err_set(e, ERR_INPUT, "archive '%s': '%.200s' is a link or a device, not a file", a->name, x.path);
    return archive_zip_give(a, &x, e);
}

/* Walks a ZIP's directory. */
static int archive_zip(struct archive *a, struct err *e)
{
    size_t end = a->n >= 22 ? a->n - 22 : 0, at, count;
    int rc = 0;

    while (end > 0 && archive_u32(a->p + end) != 0x06054b50)
        end--;
    if (a->n < 22 || archive_u32(a->p + end) != 0x06054b50)
        return archive_broken(a, "it has no directory", e);
    count = archive_u16(a->p + end + 10);
    at = archive_u32(a->p + end + 16);
    for (size_t i = 0; i < count && rc == 0; i++) {
        size_t long_is;
        if (at + 46 > a->n || archive_u32(a->p + at) != 0x02014b50)
            return archive_broken(a, "its directory ends early", e);
        long_is = 46 + archive_u16(a->p + at + 28);
        if (at + long_is > a->n)
            return archive_broken(a, "its directory ends early", e);
        rc = archive_zip_entry(a, a->p + at, e);
        at += long_is + archive_u16(a->p + at + 30) + archive_u16(a->p + at + 32);
    }
    return rc;
}

/* ---- tar ---- */

/* The path of a tar's header, with its prefix. */
static void archive_tar_path(const unsigned char *h, char *out, size_t n)
{
    bool prefixed = !memcmp(h + 257, "ustar", 5) && h[345];

    snprintf(out, n, "%.*s%s%.*s", prefixed ? 155 : 0, (const char *)h + 345, prefixed ? "/" : "", 100,
             (const char *)h);
}

/* 'h' is one header block; its data lies behind it. */
static int archive_tar_entry(struct archive *a, const unsigned char *h, size_t size, struct err *e)
{
    char path[300];

    archive_tar_path(h, path, sizeof path);
    switch (h[156]) {
    case '5': case 'g': return 0; /* folders, and remarks about all files */
    case 'x': /* remarks about the next file: times and owners; a path there would be lost */
        if (memmem(h + 512, size, " path=", 6))
            return err_set(e, ERR_INPUT, "archive '%s' has a path that is too long", a->name);
        return 0;
    case '0': case 0: return archive_give(a, path, h + 512, size, e);
    default:
        return err_set(e, ERR_INPUT, "archive '%s': '%.200s' is a link or a device, not a file", a->name, path);
    }
}

/* Walks a tar of 512-byte blocks. */
static int archive_tar(struct archive *a, struct err *e)
{
    size_t at = 0;
    int rc = 0;

    while (rc == 0 && at + 512 <= a->n && a->p[at]) {
        char digits[13] = "";
        size_t size;
        memcpy(digits, a->p + at + 124, 12);
        size = strtoull(digits, NULL, 8);
        if (size > a->n - at - 512)
            return archive_broken(a, "a file ends behind the archive", e);
        rc = archive_tar_entry(a, a->p + at, size, e);
        at += 512 + (size + 511) / 512 * 512;
    }
    return rc;
}

/* Unpacks and walks a compressed tar. */
static int archive_tar_gz(struct archive *a, struct err *e)
{
    struct buf plain;
    struct archive b = *a;
    int rc = archive_inflate(a, a->p, a->n, 31, a->left + (1 << 20), &plain, e);

    if (rc < 0)
        return -1;
    b.p = (const unsigned char *)plain.p;
    b.n = plain.n;
    rc = archive_tar(&b, e);
    buf_free(&plain);
    return rc;
}

int archive_each(const char *path, size_t max_bytes, archive_take *take, void *ctx, struct err *e)
{
    struct archive a = {.name = path, .left = max_bytes, .take = take, .ctx = ctx};
    struct buf bytes;
    int rc;

    buf_init(&bytes, max_bytes);
    rc = file_read(path, &bytes, e);
    a.p = (const unsigned char *)bytes.p;
    a.n = bytes.n;
    if (rc == 0)
        rc = path_ends(path, ".zip") ? archive_zip(&a, e) : path_ends(path, ".tar") ? archive_tar(&a, e)
           : archive_tar_gz(&a, e);
    buf_free(&bytes);
    return rc;
}
