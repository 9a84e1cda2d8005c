/* limit.c - see limit.h. Walk, choose, remove. */
#include "store/limit.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "store/store.h"

#define STAMP ".trimmed"
#define TRASH ".trash-" /* an entry on its way out; those found are what a killed trimmer left */

struct limit_walk {
    struct cache_entry *v;
    size_t n, cap;
    char **locks; /* lock files, owned */
    size_t n_locks, cap_locks;
    bool by_content;
};

void cache_touch(const char *path)
{
    utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
}

static double limit_seconds_of(struct timespec t)
{
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double limit_clock_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return limit_seconds_of(t);
}

static int limit_by_age(const void *a, const void *b)
{
    const struct cache_entry *x = a, *y = b;

    return x->used < y->used ? -1 : x->used > y->used ? 1 : strcmp(x->path, y->path);
}

size_t cache_choose(struct cache_entry *v, size_t n, uint64_t limit, double newest)
{
    uint64_t sum = 0;
    size_t k = 0;

    if (n)
        qsort(v, n, sizeof *v, limit_by_age);
    for (size_t i = 0; i < n; i++)
        sum += v[i].bytes;
    if (sum <= limit)
        return 0;
    while (k < n && v[k].used <= newest && sum > limit - limit / 10)
        sum -= v[k++].bytes;
    return k;
}

/* ---- walking ---- */

/* Adds up what lies at path; things that vanish meanwhile count nothing. */
static void limit_measure(const char *path, uint64_t *bytes, double *used)
{
    struct stat st;
    struct dirent *de;
    DIR *d;

    if (lstat(path, &st) < 0)
        return;
    *bytes += (uint64_t)st.st_blocks * 512;
    *used = limit_seconds_of(st.st_mtim) > *used ? limit_seconds_of(st.st_mtim) : *used;
    if (!S_ISDIR(st.st_mode) || !(d = opendir(path)))
        return;
    while ((de = readdir(d))) {
        char *sub;
        if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, ".."))
            continue;
        sub = path_join(path, de->d_name);
        limit_measure(sub, bytes, used);
        free(sub);
    }
    closedir(d);
}

/* Adds an entry with its size and time; takes path. */
static void limit_add_entry(struct limit_walk *w, char *path)
{
    struct cache_entry en = {.path = path};

    limit_measure(path, &en.bytes, &en.used);
    if (w->n == w->cap)
        w->v = xrealloc(w->v, (w->cap = w->cap ? w->cap * 2 : 256) * sizeof *w->v);
    w->v[w->n++] = en;
}

static void limit_add_lock(struct limit_walk *w, char *path)
{
    if (w->n_locks == w->cap_locks)
        w->locks = xrealloc(w->locks, (w->cap_locks = w->cap_locks ? w->cap_locks * 2 : 256) * sizeof *w->locks);
    w->locks[w->n_locks++] = path;
}

static bool limit_is_fan(const char *name)
{
    return isxdigit((unsigned char)name[0]) && isxdigit((unsigned char)name[1]) && !name[2];
}

/* A file of SHA-256, 'ab/cdef..' here without its folder, or one that was not finished: 'cdef...WORD'. */
static bool limit_is_content(const char *name)
{
    size_t n = strspn(name, "0123456789abcdef");

    return n == 62 && (!name[n] || name[n] == '.');
}

/* A key of 20 digits of a hash or more, alone, behind "prefix-", or with what is said behind it. */
static bool limit_is_entry(const char *name)
{
    const char *key = !strncmp(name, "prefix-", 7) ? name + 7 : name;
    size_t n = strspn(key, "0123456789abcdef");

    return n >= 20 && (!key[n] || strchr(".-", key[n]));
}

/* True for names that the store itself gives; 'fan' allows the two-letter folders above entries. */
static bool limit_is_named(const struct limit_walk *w, const char *name, bool fan)
{
    if (!strncmp(name, TRASH, strlen(TRASH)))
        return !w->by_content;
    if (fan && limit_is_fan(name))
        return true;
    return w->by_content ? !fan && limit_is_content(name) : limit_is_entry(name);
}

/* Collects size and time of each entry of a cache folder. fan: it has folders of two hex digits. */
static void limit_walk_folder(struct limit_walk *w, const char *folder, bool fan)
{
    struct dirent *de;
    DIR *d = opendir(folder);

    while (d && (de = readdir(d))) {
        const char *name = de->d_name;
        char *path;
        if (!strcmp(name, ".") || !strcmp(name, ".."))
            continue;
        if (!limit_is_named(w, name, fan)) /* somebody's */
            continue;
        path = path_join(folder, name);
        if (!strncmp(name, TRASH, strlen(TRASH))) {
            dir_remove(path, NULL);
        } else if (fan && limit_is_fan(name)) {
            limit_walk_folder(w, path, false);
        } else if (text_ends(name, ".lock")) {
            limit_add_lock(w, path);
            continue;
        } else if (name[0] != '.') {
            limit_add_entry(w, path);
            continue;
        }
        free(path);
    }
    if (d)
        closedir(d);
}

static void limit_walk_free(struct limit_walk *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->v[i].path);
    for (size_t i = 0; i < w->n_locks; i++)
        free(w->locks[i]);
    free(w->v);
    free(w->locks);
}

/* ---- removing ---- */

/* 'folder/KEY.suffix' -> 'folder/KEY.lock' */
static char *limit_lock_of(const char *path)
{
    const char *name = strrchr(path, '/') + 1;

    return xasprintf("%.*s.lock", (int)(name - path + (long)strcspn(name, ".")), path);
}

/* Under the entry's lock: gone in one step for all who look. Files go at once, folders through the trash. */
static bool limit_discard(const char *path)
{
    static unsigned serial;
    struct stat st;
    char *trash;
    bool ok;

    if (lstat(path, &st) < 0)
        return false;
    if (!S_ISDIR(st.st_mode))
        return unlink(path) == 0;
    trash = xasprintf("%.*s/" TRASH "%d-%u", (int)(strrchr(path, '/') - path), path, (int)getpid(),
                      __atomic_fetch_add(&serial, 1, __ATOMIC_RELAXED));
    ok = rename(path, trash) == 0;
    if (ok)
        dir_remove(trash, NULL);
    free(trash);
    return ok;
}

/* True if it went; false if somebody works on it or has used it meanwhile. */
static bool limit_remove_entry(const struct cache_entry *en, double newest)
{
    char *lock = limit_lock_of(en->path);
    uint64_t bytes = 0;
    double used = 0;
    bool ok = false;
    int fd = lock_file(lock, 0, NULL);

    if (fd >= 0) {
        limit_measure(en->path, &bytes, &used);
        ok = used <= newest && limit_discard(en->path);
        unlink(lock);
        close(fd);
    }
    free(lock);
    return ok;
}

/* Locks outlive their entries: those that nobody holds and that are old go too. */
static void limit_remove_stale_lock(const char *path, double newest)
{
    struct stat st;
    int fd;

    if (lstat(path, &st) < 0 || limit_seconds_of(st.st_mtim) > newest || (fd = lock_file(path, 0, NULL)) < 0)
        return;
    unlink(path);
    close(fd);
}

/* *ret_fd: the stamp, locked, if trimming is due; else -1. */
static int limit_claim(const char *root, double every_s, int *ret_fd, struct err *e)
{
    char *path = path_join(root, STAMP);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), rc = 0;
    struct stat st;

    if (fd < 0)
        rc = err_sys(e, "cannot write '%s'", path);
    else if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 ||
             (st.st_size > 0 && limit_clock_s() - limit_seconds_of(st.st_mtim) < every_s))
        close(fd), fd = -1;
    free(path);
    *ret_fd = fd;
    return rc;
}

int cache_trim(const char *root, const char *const *folders, const struct cache_limit *l, uint64_t other,
               struct cache_trimmed *ret, struct err *e)
{
    struct cache_trimmed out = {0};
    struct limit_walk w = {.by_content = l->by_content};
    double newest = limit_clock_s() - l->grace_s;
    uint64_t limit = !l->bytes ? UINT64_MAX : l->bytes > other ? l->bytes - other : 0;
    size_t go;
    int fd = -1;

    if ((l->bytes || l->keep_s > 0) && file_is_dir(root) && limit_claim(root, l->every_s, &fd, e) < 0)
        return -1;
    if (fd < 0) {
        *ret = out;
        return 0;
    }
    out.looked = true;
    for (; *folders; folders++) {
        char *folder = path_join(root, *folders);
        limit_walk_folder(&w, folder, true);
        free(folder);
    }
    for (size_t i = 0; i < w.n; i++)
        out.before += w.v[i].bytes;
    out.after = out.before;
    go = cache_choose(w.v, w.n, limit, newest);
    while (l->keep_s > 0 && go < w.n && w.v[go].used < fmin(newest, limit_clock_s() - l->keep_s))
        go++;
    for (size_t i = 0; i < go; i++)
        if (limit_remove_entry(&w.v[i], newest)) {
            out.after -= w.v[i].bytes;
            out.removed++;
        }
    for (size_t i = 0; go && i < w.n_locks; i++)
        limit_remove_stale_lock(w.locks[i], newest);
    limit_walk_free(&w);
    if (ftruncate(fd, 0) < 0 || ftruncate(fd, 1) < 0) /* sets the time */
        out.looked = false;
    close(fd);
    *ret = out;
    return 0;
}
