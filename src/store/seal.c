/* seal.c - see seal.h. A sealed file is a line of 79 characters, "musacoder/2 HASH   " and its end, then the
 * payload. Entries of version 1, whose seals did not know their names, are dropped. */
#include "store/seal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/log.h"

#define MAGIC "musacoder/2 "
#define SUMS "SHA256SUMS"

void seal_start(struct sha256 *h, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    if (slash && slash - path >= 2 && isxdigit((unsigned char)slash[-1]) && isxdigit((unsigned char)slash[-2]) &&
        (slash - path == 2 || slash[-3] == '/'))
        name = slash - 2;
    sha256_start(h);
    sha256_adds(h, "musacoder seal");
    sha256_adds(h, name);
}

static void seal_head_of(const char hash[65], char ret[SEAL_HEAD + 1])
{
    snprintf(ret, SEAL_HEAD + 1, "%s%-67s\n", MAGIC, hash);
}

int seal_write(const char *path, const struct seal_part *parts, int n_parts, struct err *e)
{
    char hash[65], head[SEAL_HEAD + 1];
    struct sha256 h;
    struct buf b;
    int rc;

    seal_start(&h, path);
    for (int i = 0; i < n_parts; i++)
        sha256_add(&h, parts[i].p, parts[i].n);
    sha256_end(&h, hash);
    seal_head_of(hash, head);
    buf_init(&b, (size_t)1 << 40);
    buf_add(&b, head, SEAL_HEAD);
    for (int i = 0; i < n_parts; i++)
        buf_add(&b, parts[i].p, parts[i].n);
    rc = file_write(path, b.p, b.n, e);
    buf_free(&b);
    return rc;
}

/* True where the buffer begins with the seal of what follows, for this file's name. */
static bool seal_matches(const char *path, const struct buf *b)
{
    char hash[65], head[SEAL_HEAD + 1];
    struct sha256 h;

    if (b->n < SEAL_HEAD)
        return false;
    seal_start(&h, path);
    sha256_add(&h, b->p + SEAL_HEAD, b->n - SEAL_HEAD);
    sha256_end(&h, hash);
    seal_head_of(hash, head);
    return !memcmp(b->p, head, SEAL_HEAD);
}

bool seal_read(const char *path, struct buf *out)
{
    if (!file_exists(path) || file_read(path, out, NULL) < 0)
        return false;
    if (seal_matches(path, out))
        return true;
    if (!strncmp(out->p, MAGIC, strlen(MAGIC))) /* else it is of an older version, and no damage */
        log_warn("'%s' is damaged and is made again", path);
    unlink(path);
    return false;
}

/* ---- folders ---- */

/* The comment that ends SHA256SUMS: a seal of what stands before it. */
static void seal_sums_end(const char *dir, const char *sums, size_t n, char ret[SEAL_HEAD + 1])
{
    char hash[65];
    struct sha256 h;

    seal_start(&h, dir);
    sha256_add(&h, sums, n);
    sha256_end(&h, hash);
    snprintf(ret, SEAL_HEAD + 1, "# %s%s\n", MAGIC, hash);
}

int seal_folder(const char *work, const char *dir, const char *const *names, struct err *e)
{
    char *sums = path_join(work, SUMS), hash[65], end[SEAL_HEAD + 1];
    struct buf b;
    int rc = 0;

    buf_init(&b, 1 << 16);
    for (; *names && rc == 0; names++) {
        char *path = path_join(work, *names);

        if (file_exists(path) && (rc = sha256_file(path, hash)) == 0)
            buf_addf(&b, "%s  %s\n", hash, *names);
        else if (rc < 0)
            err_sys(e, "cannot read '%s'", path);
        free(path);
    }
    seal_sums_end(dir, b.p, b.n, end);
    buf_adds(&b, end);
    if (rc == 0)
        rc = file_write(sums, b.p, b.n, e);
    buf_free(&b);
    free(sums);
    return rc;
}

/* True where a seal's line "HASH  NAME" is true of dir/NAME. */
static bool seal_line_holds(const char *dir, const char *line)
{
    char *path = strlen(line) > 66 && name_is_part(line + 66) ? path_join(dir, line + 66) : NULL, hash[65] = "";
    bool holds = path && sha256_file(path, hash) == 0 && !strncmp(line, hash, 64);

    free(path);
    return holds;
}

/* Cuts the comment off if it seals what is before it, for this folder. */
static bool seal_sums_hold(const char *dir, struct buf *b)
{
    char *comment = strstr(b->p, "# " MAGIC), end[SEAL_HEAD + 1];

    if (!comment || comment == b->p)
        return false;
    seal_sums_end(dir, b->p, (size_t)(comment - b->p), end);
    if (strcmp(comment, end))
        return false;
    *comment = 0;
    return true;
}

bool seal_folder_holds(const char *dir)
{
    char *sums = path_join(dir, SUMS), *save = NULL;
    struct buf b;
    bool holds, ours;

    buf_init(&b, 1 << 16);
    holds = file_exists(sums) && file_read(sums, &b, NULL) == 0;
    ours = strstr(b.p, "# " MAGIC);
    holds = holds && seal_sums_hold(dir, &b);
    for (char *line = strtok_r(b.p, "\n", &save); holds && line; line = strtok_r(NULL, "\n", &save))
        holds = seal_line_holds(dir, line);
    if (ours && !holds) /* else it is of an older version, and no damage */
        log_warn("what lies in '%s' is damaged and is made again", dir);
    buf_free(&b);
    free(sums);
    return holds;
}
