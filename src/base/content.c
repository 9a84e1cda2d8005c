/* content.c - see content.h. */
#include "base/content.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"

#define PIECE ((size_t)64 << 10)
#define PIECES 256

/* One piece; a short one is the end of the file. -1: it cannot be read. */
static ssize_t content_add_piece(struct sha256 *h, int fd, off_t at, char *piece)
{
    ssize_t n = pread(fd, piece, PIECE, at);

    if (n > 0)
        sha256_add(h, piece, (size_t)n);
    return n;
}

static int content_add_bytes(struct sha256 *h, int fd, off_t size)
{
    char *piece = xmalloc(PIECE);
    off_t step = size <= (off_t)CONTENT_WHOLE ? (off_t)PIECE : (size - (off_t)PIECE) / (PIECES - 1);
    ssize_t n = 1;

    for (off_t at = 0; at < size && n > 0; at += step)
        n = content_add_piece(h, fd, at, piece);
    if (n > 0 && size > (off_t)CONTENT_WHOLE) // steps are whole numbers and end a little before
        n = content_add_piece(h, fd, size - (off_t)PIECE, piece);
    free(piece);
    return n < 0 ? -1 : 0;
}

static int content_add_file(struct sha256 *h, const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc;
    struct stat st;

    if (fd < 0) {
        err_sys(e, "cannot open '%s'", path);
        if (e)
            e->kind = ERR_INPUT;
        return -1;
    }
    rc = fstat(fd, &st);
    if (rc == 0) {
        sha256_add(h, &st.st_size, sizeof st.st_size);
        rc = content_add_bytes(h, fd, st.st_size);
    }
    if (rc < 0)
        err_sys(e, "cannot read '%s'", path);
    close(fd);
    return rc;
}

static int content_add_path(struct sha256 *h, const char *path, struct err *e);

static int content_add_folder(struct sha256 *h, const char *path, const char *without, struct err *e)
{
    char **names, *p;
    size_t n;
    int rc;

    if ((rc = dir_list(path, &names, &n, e)) < 0)
        return -1;
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (!strcmp(names[i], without))
            continue;
        p = path_join(path, names[i]);
        sha256_adds(h, names[i]);
        rc = content_add_path(h, p, e);
        free(p);
    }
    names_free(names, n);
    return rc;
}

static int content_add_path(struct sha256 *h, const char *path, struct err *e)
{
    return file_is_dir(path) ? content_add_folder(h, path, "", e) : content_add_file(h, path, e);
}

int content_digest_without(const char *folder, const char *without, char ret[65], struct err *e)
{
    char hex[65];
    struct sha256 h;
    int rc;

    sha256_start(&h);
    rc = content_add_folder(&h, folder, without, e);
    sha256_end(&h, hex);
    if (rc == 0)
        memcpy(ret, hex, sizeof hex);
    return rc;
}

int content_digest(const char *spec, char ret[65], struct err *e)
{
    char *list = xstrdup(spec), *save = NULL, hex[65];
    struct sha256 h;
    int rc = 0;

    sha256_start(&h);
    for (char *p = strtok_r(list, ",", &save); p && rc == 0; p = strtok_r(NULL, ",", &save)) {
        sha256_adds(&h, "");
        rc = content_add_path(&h, p, e);
    }
    sha256_end(&h, hex);
    free(list);
    if (rc == 0)
        memcpy(ret, hex, sizeof hex);
    return rc;
}
