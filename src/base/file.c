/* file.c - see file.h. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/stamp.h"

int file_read(const char *path, struct buf *out, struct err *e)
{
    char chunk[65536];
    struct stat st;
    ssize_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        err_sys(e, "cannot open '%s'", path);
        if (e)
            e->kind = ERR_INPUT;
        return -1;
    }
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(fd);
        return err_set(e, ERR_INPUT, "'%s' is a folder; name a file", path);
    }
    while (!out->cut && (n = read(fd, chunk, sizeof chunk)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        buf_add(out, chunk, (size_t)n);
    }
    close(fd);
    if (n < 0)
        return err_sys(e, "cannot read '%s'", path);
    if (out->cut)
        return err_set(e, ERR_INPUT, "'%s' is larger than %zu bytes", path, out->max);
    return 0;
}

/* Writes all n bytes. -1 with errno. */
static int file_write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -1;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

/* A new name beside path: processes, threads and hosts that share the folder never meet in one file. */
char *file_temporary(const char *path)
{
    uint64_t any = 0;

    if (getrandom(&any, sizeof any, 0) != sizeof any)
        any = (uint64_t)getpid() << 32 ^ (uint64_t)clock();
    return xasprintf("%s.tmp.%016llx", path, (unsigned long long)any);
}

/* What follows the last ".tmp."; NULL: there is none. */
static const char *file_temporary_tail(const char *name)
{
    const char *tail = NULL;

    for (const char *p = name; (p = strstr(p, ".tmp.")) != NULL;)
        tail = p += 5;
    return tail;
}

bool file_is_temporary(const char *name)
{
    const char *tail = file_temporary_tail(name);

    return tail && strlen(tail) == 16 && strspn(tail, "0123456789abcdef") == 16;
}

/* What a link names, so that the link stays; the path itself where it is none. Owned. */
static char *file_write_target(const char *path)
{
    struct stat st;
    char *real = lstat(path, &st) == 0 && S_ISLNK(st.st_mode) ? realpath(path, NULL) : NULL;

    return real ? real : xstrdup(path);
}

/* The file that is replaced passes its mode on. */
static int file_create_as(const char *tmp, const char *target)
{
    struct stat st;
    int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    if (fd >= 0 && stat(target, &st) == 0 && S_ISREG(st.st_mode))
        (void)!fchmod(fd, st.st_mode & 0777);
    return fd;
}

/* Is it what our standard output goes to, as /dev/stdout is? What is printed later would go with a replaced file. */
static bool file_is_stdout(const char *path)
{
    struct stat st, out;

    return stat(path, &st) == 0 && fstat(STDOUT_FILENO, &out) == 0 && st.st_dev == out.st_dev &&
           st.st_ino == out.st_ino;
}

bool file_is_special(const char *path)
{
    struct stat st;

    return (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) || file_is_stdout(path);
}

static int file_write_into(const char *path, const void *data, size_t n, struct err *e)
{
    bool own = file_is_stdout(path);
    struct stat st;
    int fd, rc = 0;

    if (!own && stat(path, &st) == 0 && !S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode))
        return err_set(e, ERR_INPUT, "'%s' is a disk or a socket, which is not written over; name a file", path);
    fflush(stdout); /* what was printed before stays before it */
    fd = own ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || file_write_all(fd, data, n) < 0)
        rc = err_sys(e, "cannot write '%s'", path);
    if (fd >= 0)
        close(fd);
    return rc;
}

int file_write(const char *path, const void *data, size_t n, struct err *e)
{
    char *target, *tmp;
    int fd, rc = 0;

    if (stamp_check_links(path, e) < 0)
        return -1;
    if (file_is_special(path))
        return file_write_into(path, data, n, e);
    target = file_write_target(path), tmp = file_temporary(target);
    fd = file_create_as(tmp, target);
    if (fd < 0) {
        rc = err_sys(e, "cannot create '%s'", path);
    } else {
        if (file_write_all(fd, data, n) < 0 || fsync(fd) < 0)
            rc = err_sys(e, "cannot write '%s'", path);
        if (close(fd) < 0 && rc == 0)
            rc = err_sys(e, "cannot write '%s'", path);
        if (rc == 0 && rename(tmp, target) < 0)
            rc = err_sys(e, "cannot replace '%s'", path);
        if (rc < 0)
            unlink(tmp);
    }
    free(tmp);
    free(target);
    return rc;
}

bool file_is_same(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int file_write_try(const char *path, struct err *e)
{
    char *tmp;
    int fd;

    if (file_is_dir(path))
        return err_set(e, ERR_ENV, "cannot create '%s': it is a folder", path);
    if (file_is_special(path))
        return access(path, W_OK) < 0 ? err_sys(e, "cannot write '%s'", path) : 0;
    tmp = file_temporary(path);
    fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        err_sys(e, "cannot create '%s'", path);
    else {
        close(fd);
        unlink(tmp);
    }
    free(tmp);
    return fd < 0 ? -1 : 0;
}

int file_append(const char *path, const void *data, size_t n, struct err *e)
{
    int fd, rc = 0;

    if (stamp_check_links(path, e) < 0)
        return -1;
    if ((fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) < 0)
        return err_sys(e, "cannot open '%s'", path);
    if (file_write_all(fd, data, n) < 0)
        rc = err_sys(e, "cannot append to '%s'", path);
    close(fd);
    return rc;
}

int file_copy(const char *from, const char *to, struct err *e)
{
    struct buf b;
    int rc;

    buf_init(&b, (size_t)1 << 40);
    rc = file_read(from, &b, e);
    if (rc == 0)
        rc = file_write(to, b.p, b.n, e);
    buf_free(&b);
    return rc;
}

int file_keep_aside(const char *path, char **ret, struct err *e)
{
    for (int k = 1;; k++) {
        char *to = k == 1 ? xasprintf("%s.edited", path) : xasprintf("%s.edited.%d", path, k);
        int rc = linkat(AT_FDCWD, path, AT_FDCWD, to, 0); /* a link as a link */

        if (rc < 0 && errno != EEXIST && !file_exists(to)) /* a file system without hard links */
            rc = file_copy(path, to, e) < 0 ? -2 : 0;
        if (rc == 0 || (rc == -1 && file_is_same(path, to))) { /* kept before a stop */
            *ret = to;
            return 0;
        }
        free(to);
        if (rc == -2)
            return err_prefix(e, "cannot keep '%s'; move it away", path);
    }
}

bool file_exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG);
}

bool file_is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int dir_make(const char *path, struct err *e)
{
    char *copy;
    int rc = 0;

    if (!*path)
        return err_set(e, ERR_INPUT, "the folder's name is empty");
    copy = xstrdup(path);
    for (char *p = copy + 1; rc == 0; p++) {
        char c = *p;
        if (c != '/' && c != 0)
            continue;
        *p = 0;
        if (mkdir(copy, 0777) < 0 && errno != EEXIST)
            rc = err_sys(e, "cannot create folder '%s'", copy);
        *p = c;
        if (!c)
            break;
    }
    free(copy);
    if (rc == 0 && !file_is_dir(path))
        return err_set(e, ERR_ENV, "'%s' exists and is not a folder", path);
    return rc;
}

/* Removes a file, or a folder with all below it, without following links. What is absent is removed. -1 with errno.
 * */
static int file_remove_at(int dirfd, const char *name)
{
    struct stat st;
    DIR *d;
    struct dirent *de;
    int fd, rc = 0;

    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -1;
    if (!S_ISDIR(st.st_mode))
        return unlinkat(dirfd, name, 0);
    fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || !(d = fdopendir(fd)))
        return -1;
    while ((de = readdir(d)) != NULL)
        if (strcmp(de->d_name, ".") && strcmp(de->d_name, "..") && file_remove_at(fd, de->d_name) < 0)
            rc = -1;
    closedir(d);
    return unlinkat(dirfd, name, AT_REMOVEDIR) < 0 ? -1 : rc;
}

int dir_remove(const char *path, struct err *e)
{
    if (file_remove_at(AT_FDCWD, path) < 0)
        return err_sys(e, "cannot remove '%s'", path);
    return 0;
}

static int file_by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int dir_list(const char *path, char ***ret_names, size_t *ret_n, struct err *e)
{
    DIR *d = opendir(path);
    struct dirent *de;
    char **names = NULL;
    size_t n = 0, cap = 0;

    if (!d) {
        err_sys(e, "cannot list '%s'", path);
        if (e)
            e->kind = ERR_INPUT;
        return -1;
    }
    while ((de = readdir(d)) != NULL) {
        if (de->d_name[0] == '.')
            continue;
        if (n == cap)
            names = xrealloc(names, (cap = cap ? cap * 2 : 32) * sizeof *names);
        names[n++] = xstrdup(de->d_name);
    }
    closedir(d);
    if (n)
        qsort(names, n, sizeof *names, file_by_name);
    *ret_names = names;
    *ret_n = n;
    return 0;
}

int dir_each(const char *dir, int (*take)(void *ctx, const char *path, const char *name, struct err *e), void *ctx,
             struct err *e)
{
    char **names;
    size_t n;
    int rc = 0;

    if (dir_list(dir, &names, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n && rc == 0; i++) {
        char *path = path_join(dir, names[i]);

        rc = take(ctx, path, names[i], e);
        free(path);
    }
    names_free(names, n);
    return rc;
}

void names_free(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

char *dir_temp(const char *prefix, struct err *e)
{
    const char *base = getenv("TMPDIR");
    char *path = xasprintf("%s/%s.XXXXXX", base && *base ? base : "/tmp", prefix);

    if (!mkdtemp(path)) {
        err_sys(e, "cannot create a temporary folder '%s'", path);
        free(path);
        return NULL;
    }
    return path;
}

/* a/b in new memory; a alone where b is empty. */
char *path_join(const char *a, const char *b)
{
    size_t n = strlen(a);

    if (!*b)
        return xstrdup(a);
    return xasprintf("%s%s%s", a, n && a[n - 1] == '/' ? "" : "/", b);
}

char *path_folder(const char *path)
{
    const char *slash = strrchr(path, '/');

    return !slash ? xstrdup(".") : slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

char *path_real(const char *path)
{
    char *real = realpath(path, NULL), *above, *joined;

    if (real || !*path || !strcmp(path, ".") || !strcmp(path, "/"))
        return real ? real : xstrdup(path);
    above = path_folder(path);
    real = path_real(above);
    joined = path_join(real, path_name(path));
    free(above), free(real);
    return joined;
}

bool path_is_below(const char *folder, const char *path)
{
    size_t n = strlen(folder);

    return !strncmp(folder, path, n) && (path[n] == '/' || (n && folder[n - 1] == '/' && path[n]));
}

char *path_stem(const char *path)
{
    const char *s = path_name(path), *dot = strrchr(s, '.');

    return xstrndup(s, dot && dot > s ? (size_t)(dot - s) : strlen(s));
}

bool path_ends(const char *path, const char *ending)
{
    size_t n = strlen(path), k = strlen(ending);

    return n > k && !strcmp(path + n - k, ending) && path[n - k - 1] != '/';
}

/* Climbs from the running binary: the first of DIR + tails[0] + '/' + name, DIR + tails[1] + '/' + name that exists,
 * nearest DIR first; *ret_root (if not NULL) is DIR with its tail. NULL if there is none. */
static char *file_path_climb(const char *const tails[2], const char *name, char **ret_root)
{
    char exe[PATH_MAX], *slash;
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);

    exe[n < 0 ? 0 : n] = 0;
    while ((slash = strrchr(exe, '/'))) {
        *slash = 0;
        for (int i = 0; i < 2; i++) {
            char *root = xasprintf("%s%s", exe, tails[i]), *path = path_join(root, name);

            if (file_exists(path)) {
                ret_root ? (void)(*ret_root = root) : free(root);
                return path;
            }
            free(root), free(path);
        }
    }
    return NULL;
}

char *path_share(const char *name)
{
    static const char *const tails[2] = {"", "/share/musacoder"};
    const char *env = getenv("MUSACODER_SHARE");
    char *root = NULL, *path;

    if (env && *env)
        return path_join(env, name);
    free(file_path_climb(tails, "runner/main.py", &root));
    path = path_join(root ? root : ".", name);
    free(root);
    return path;
}

char *path_lib(const char *name)
{
    static const char *const tails[2] = {"/lib", "/lib/musacoder"};
    const char *env = getenv("MUSACODER_LIB_DIR");
    char *path = env && *env ? path_join(env, name) : NULL;

    if (path && file_exists(path))
        return path;
    free(path);
    return file_path_climb(tails, name, NULL);
}

char *path_lib_folder(void)
{
    char *path = path_lib("libsimt.so"), *slash = path ? strrchr(path, '/') : NULL;

    if (slash)
        *slash = 0;
    return path;
}

/* $HOME, else what the system says of the user: services have no environment. Owned. */
static char *file_home(void)
{
    const char *home = getenv("HOME");
    struct passwd user, *found = NULL;
    char room[4096];

    if (!(home && *home) && getpwuid_r(geteuid(), &user, room, sizeof room, &found) == 0 && found)
        home = user.pw_dir;
    return xstrdup(home && *home ? home : "/");
}

/* A folder of the user's own, joined with name: of variable own, else of xdg, else below the home folder. The caller
 * frees. */
static char *file_user_dir(const char *own, const char *xdg, const char *home_tail, const char *name)
{
    const char *v;
    char *base, *path, *home = NULL;

    if ((v = getenv(own)) && *v)
        base = xstrdup(v);
    else if ((v = getenv(xdg)) && *v)
        base = path_join(v, "musacoder");
    else
        base = xasprintf("%s/%s/musacoder", home = file_home(), home_tail);
    path = path_join(base, name);
    free(base), free(home);
    return path;
}

char *path_data(const char *name)
{
    return file_user_dir("MUSACODER_DATA_DIR", "XDG_DATA_HOME", ".local/share", name);
}

char *path_cache(const char *name)
{
    return file_user_dir("MUSACODER_CACHE_DIR", "XDG_CACHE_HOME", ".cache", name);
}

char *path_models(void)
{
    const char *hub = getenv("HF_HUB_CACHE"), *hf = getenv("HF_HOME"), *home = getenv("HOME");
    char *path = hub && *hub     ? xstrdup(hub)
                 : hf && *hf     ? path_join(hf, "hub")
                 : home && *home ? path_join(home, ".cache/huggingface/hub")
                                 : NULL;

    if (path && !file_is_dir(path)) {
        free(path);
        path = NULL;
    }
    return path;
}

char *path_python(struct err *e)
{
    const char *env = getenv("MUSACODER_PYTHON");
    char *p, *link;
    struct buf b;

    if (env && *env) {
        if (access(env, X_OK) == 0)
            return xstrdup(env);
        err_set(e, ERR_ENV, "MUSACODER_PYTHON names '%s', which cannot be run; unset it or run 'musacoder setup'", env);
        return NULL;
    }
    /* 'musacoder setup' writes the chosen interpreter's path here: the virtual environment's or one it found */
    link = path_data("python");
    buf_init(&b, 4096);
    p = NULL;
    if (file_exists(link) && file_read(link, &b, NULL) == 0) {
        b.p[strcspn(b.p, "\r\n")] = 0;
        if (access(b.p, X_OK) == 0)
            p = xstrdup(b.p);
    }
    buf_free(&b);
    free(link);
    if (!p) {
        p = path_data("venv/bin/python");
        if (access(p, X_OK) != 0) {
            free(p);
            p = NULL;
            char *data = path_data("");
            err_set(e, ERR_ENV, "no Python with PyTorch is set up in '%s'; run 'musacoder setup', or name one in "
                                "MUSACODER_PYTHON", data);
            free(data);
        }
    }
    return p;
}
