/* content.c - see content.h. */
#include "store/content.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/limit.h"
#include "store/seal.h"
#include "store/store.h"

#define KEPT ((off_t)1 << 20)      /* what is smaller is read each time */
#define ANNOUNCED ((off_t)1 << 30)
#define SETTLED_S 2 /* what changed a moment ago may change again within the same tick of its clock */

/* ---- one file ---- */

/* Opens a regular file and its state; -1 with e for anything else. */
static int content_open(const char *path, struct stat *ret, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would wait for a writer */

    if (fd >= 0 && fstat(fd, ret) == 0 && S_ISREG(ret->st_mode))
        return fd;
    if (fd >= 0)
        err_set(e, ERR_INPUT, "'%s' is no file", path), close(fd);
    else
        err_sys(e, "cannot open '%s'", path);
    if (e)
        e->kind = ERR_INPUT;
    return -1;
}

/* Adds the whole file. */
static int content_add_bytes(struct sha256 *h, int fd, const char *path, struct err *e)
{
    return sha256_add_fd(h, fd) < 0 ? err_sys(e, "cannot read '%s'", path) : 0;
}

/* True if both have one device, inode, size and time of change. */
static bool content_same_state(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           !memcmp(&a->st_mtim, &b->st_mtim, sizeof a->st_mtim) && !memcmp(&a->st_ctim, &b->st_ctim, sizeof a->st_ctim);
}

/* Adds what changes whenever the file does. */
static void content_add_state(struct sha256 *h, const char *path, const struct stat *s)
{
    char *state = xasprintf("%llu %llu %lld %lld.%09ld %lld.%09ld", (unsigned long long)s->st_dev,
                            (unsigned long long)s->st_ino, (long long)s->st_size, (long long)s->st_mtim.tv_sec,
                            s->st_mtim.tv_nsec, (long long)s->st_ctim.tv_sec, s->st_ctim.tv_nsec);

    sha256_adds(h, path);
    sha256_adds(h, state);
    free(state);
}

/* Where the hash of a file in this state is kept; owned. */
static char *content_kept_path(const char *path, const struct stat *s)
{
    char *folder = path_cache("content"), *real = realpath(path, NULL), key[65], *ret;
    struct sha256 h;

    sha256_start(&h);
    content_add_state(&h, real ? real : path, s);
    sha256_end(&h, key);
    ret = artefact_path(folder, key, ".sha256");
    free(folder), free(real);
    return ret;
}

/* A hash that was kept for a file of this state. False: none, or it is damaged. */
static bool content_recall(const char *kept, char ret[65])
{
    struct buf b;
    bool found;

    buf_init(&b, 4096);
    found = seal_read(kept, &b) && b.n == SEAL_HEAD + 64;
    if (found) {
        memcpy(ret, b.p + SEAL_HEAD, 64);
        ret[64] = 0;
        cache_touch(kept);
    }
    buf_free(&b);
    return found;
}

/* A file that changes while it is read, or has just changed, is not remembered. */
static void content_remember(const char *kept, int fd, const struct stat *before, const char *hash)
{
    struct stat after;
    struct err e = ERR_INIT;

    if (fstat(fd, &after) == 0 && content_same_state(before, &after) && time(NULL) > after.st_ctim.tv_sec + SETTLED_S &&
        seal_write(kept, &(struct seal_part){hash, 64}, 1, &e) < 0)
        log_debug("a file's hash is not remembered: %s", e.msg);
}

int content_hash_file(const char *path, char ret[65], struct err *e)
{
    struct stat s;
    int fd = content_open(path, &s, e), rc = 0;
    char *kept = fd >= 0 && s.st_size >= KEPT ? content_kept_path(path, &s) : NULL;
    struct sha256 h;

    if (fd < 0)
        return -1;
    if (!kept || !content_recall(kept, ret)) {
        if (s.st_size >= ANNOUNCED)
            log_info("reading '%s' (%.1f GiB), to know it by what it holds", path, (double)s.st_size / 0x1p30);
        sha256_start(&h);
        rc = content_add_bytes(&h, fd, path, e);
        sha256_end(&h, ret);
        if (rc == 0 && kept)
            content_remember(kept, fd, &s, ret);
    }
    free(kept);
    close(fd);
    return rc;
}

/* ---- files and folders ---- */

/* Adds a file's size and bytes, or its own hash where it is large. */
static int content_add_file(struct sha256 *h, const char *path, struct err *e)
{
    char hash[65];
    struct stat st;
    int fd = content_open(path, &st, e), rc;

    if (fd < 0)
        return -1;
    sha256_add(h, &st.st_size, sizeof st.st_size);
    if (st.st_size <= (off_t)CONTENT_WHOLE)
        rc = content_add_bytes(h, fd, path, e);
    else if ((rc = content_hash_file(path, hash, e)) == 0)
        sha256_adds(h, hash);
    close(fd);
    return rc;
}

/* Which names of a folder count. */
struct content_choice {
    const char *without;             /* not this one */
    bool (*counts)(const char *name); /* NULL: all */
};

bool content_is_of_model(const char *name)
{
    static const char *const names[] = {"config.json", "generation_config.json", "tokenizer.json",
                                        "tokenizer_config.json", "vocab.json", "merges.txt", "special_tokens_map.json",
                                        "added_tokens.json", "chat_template.jinja", "chat_template.json"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    return path_ends(name, ".safetensors") || path_ends(name, ".safetensors.index.json");
}

bool content_is_of_records(const char *name)
{
    return strncmp(name, "heldout", 7) && strncmp(name, "failed-", 7) &&
           (path_ends(name, ".jsonl") || path_ends(name, ".parquet"));
}

static int content_add_path(struct sha256 *h, const char *path, struct err *e);

/* Adds names and contents of all below path that are chosen. */
static int content_add_folder(struct sha256 *h, const char *path, struct content_choice c, struct err *e)
{
    char **names, *p;
    size_t n;
    int rc;

    if ((rc = dir_list(path, &names, &n, e)) < 0)
        return -1;
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (!strcmp(names[i], c.without) || (c.counts && !c.counts(names[i])))
            continue;
        p = path_join(path, names[i]);
        sha256_adds(h, names[i]);
        rc = content_add_path(h, p, e);
        free(p);
    }
    names_free(names, n);
    return rc;
}

/* Adds a file or a folder to the hash. */
static int content_add_path(struct sha256 *h, const char *path, struct err *e)
{
    const struct content_choice all = {.without = ""};

    return file_is_dir(path) ? content_add_folder(h, path, all, e) : content_add_file(h, path, e);
}

int content_digest_without(const char *folder, const char *without, char ret[65], struct err *e)
{
    char hex[65];
    struct sha256 h;
    int rc;

    sha256_start(&h);
    rc = content_add_folder(&h, folder, (struct content_choice){.without = without}, e);
    sha256_end(&h, hex);
    if (rc == 0)
        memcpy(ret, hex, sizeof hex);
    return rc;
}

/* ret: SHA-256 in hex of what the files and folders of a comma-separated list hold, by names that count. */
static int content_digest_of(const char *spec, bool (*counts)(const char *), char ret[65], struct err *e)
{
    struct content_choice c = {.without = "", .counts = counts};
    char *list = xstrdup(spec), *save = NULL, hex[65];
    struct sha256 h;
    int rc = 0;

    sha256_start(&h);
    for (char *p = strtok_r(list, ",", &save); p && rc == 0; p = strtok_r(NULL, ",", &save)) {
        sha256_adds(&h, "");
        rc = file_is_dir(p) ? content_add_folder(&h, p, c, e) : content_add_file(&h, p, e);
    }
    sha256_end(&h, hex);
    free(list);
    if (rc == 0)
        memcpy(ret, hex, sizeof hex);
    return rc;
}

int content_digest(const char *spec, char ret[65], struct err *e)
{
    return content_digest_of(spec, NULL, ret, e);
}

int content_digest_model(const char *spec, char ret[65], struct err *e)
{
    return content_digest_of(spec, content_is_of_model, ret, e);
}

int content_digest_records(const char *spec, char ret[65], struct err *e)
{
    return content_digest_of(spec, content_is_of_records, ret, e);
}

/* Adds the states of all files below a folder, but for one name; no content is read. */
static int content_add_states(struct sha256 *h, const char *folder, const char *without, struct err *e)
{
    struct stat s;
    char **names;
    size_t n;
    int rc = 0;

    if (dir_list(folder, &names, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n && rc == 0; i++) {
        char *path = path_join(folder, names[i]);

        if (file_is_dir(path))
            rc = content_add_states(h, path, "", e);
        else if (strcmp(names[i], without) && (rc = stat(path, &s)) < 0)
            err_sys(e, "cannot look at '%s'", path);
        else if (strcmp(names[i], without))
            content_add_state(h, names[i], &s);
        free(path);
    }
    names_free(names, n);
    return rc;
}

int content_states(const char *folder, const char *without, char ret[65], struct err *e)
{
    struct sha256 h;
    int rc;

    sha256_start(&h);
    rc = content_add_states(&h, folder, without, e);
    sha256_end(&h, ret);
    return rc;
}
