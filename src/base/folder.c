/* folder.c - see folder.h. */
#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

/* ---- whose it is ---- */

bool name_is_part(const char *name)
{
    return *name && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}

/* The stamp's own temporary name does not count: a writer was killed before it could put anything else there. */
static bool folder_is_stamp_name(const char *name)
{
    return !strncmp(name, STAMP_NAME, strlen(STAMP_NAME)) &&
           (!name[strlen(STAMP_NAME)] || file_is_temporary(name));
}

/* True where the folder has more than our stamp. */
static bool folder_holds_something(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *de;
    bool found = false;

    while (d && !found && (de = readdir(d)) != NULL)
        found = strcmp(de->d_name, ".") && strcmp(de->d_name, "..") &&
                (!folder_is_stamp_name(de->d_name) || (!de->d_name[strlen(STAMP_NAME)] && !stamp_is_in(path)));
    if (d)
        closedir(d);
    return found;
}

bool folder_holds_results(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *de;
    bool found = false;

    while (d && !found && (de = readdir(d)) != NULL)
        found = strcmp(de->d_name, ".") && strcmp(de->d_name, "..") && strcmp(de->d_name, "lock") &&
                strcmp(de->d_name, STAMP_NAME) && !file_is_temporary(de->d_name);
    if (d)
        closedir(d);
    return found;
}

int folder_check_claim(const char *path, const char *claim, const char *const *names, struct err *e)
{
    char *file = path_join(path, claim);
    int rc = 0;

    for (; *names && rc == 0 && !file_exists(file); names++) {
        char *made = path_join(path, *names);

        if (file_is_dir(made) ? folder_holds_results(made) : file_exists(made))
            rc = err_set(e, ERR_INPUT, "'%s' is gone, which says what '%s' was started with; bring it back, or remove "
                                       "'%s' to start from the beginning", file, path, made);
        free(made);
    }
    free(file);
    return rc;
}

int folder_check_other(const char *path, const char *one, const char *other, struct err *e)
{
    char *a = path_join(path, one), *b = path_join(path, other);
    int rc = file_exists(a) && file_exists(b) ? err_set(e, ERR_INPUT, "'%s' holds a corpus of another form, with '%s' "
                                                        "and '%s'; name another --out", path, one, other) : 0;

    free(a), free(b);
    return rc;
}

#define STAMP_TEXT "This folder is written and emptied by musacoder.\n"
#define STAMP_OF "It is of "

/* A stamp never takes another's place: commands that came first hold locks on that one. */
static int folder_put_stamp(const char *stamp, const char *text, struct err *e)
{
    char *tmp = file_temporary(stamp);
    int rc = file_write(tmp, text, strlen(text), e);

    if (rc == 0 && link(tmp, stamp) < 0 && errno != EEXIST && rename(tmp, stamp) < 0) /* a disk without hard links */
        rc = err_sys(e, "cannot create '%s'", stamp);
    unlink(tmp);
    free(tmp);
    return rc;
}

/* Makes the folder and writes our stamp into it. what: whose folder it is. */
static int folder_stamp(const char *path, const char *what, struct err *e)
{
    char *stamp = path_join(path, STAMP_NAME);
    char *text = xasprintf(STAMP_TEXT STAMP_OF "%s.\n", what);
    int rc = dir_make(path, e);

    for (int tries = 3; rc == 0 && !file_exists(stamp) && tries > 0; tries--) /* who locks it sweeps our file */
        rc = folder_put_stamp(stamp, text, tries > 1 ? NULL : e) < 0 && tries == 1 ? -1 : 0;
    free(text);
    free(stamp);
    return rc;
}

/* What the stamp says that the folder is of, owned; NULL: it does not say. */
static char *folder_kind(const char *path)
{
    char *stamp = path_join(path, STAMP_NAME), *at, *kind = NULL;
    struct buf b;

    buf_init(&b, 4096);
    if (file_exists(stamp) && file_read(stamp, &b, NULL) == 0 && (at = strstr(b.p, STAMP_OF)))
        kind = xstrndup(at + strlen(STAMP_OF), strcspn(at + strlen(STAMP_OF), ".\n"));
    buf_free(&b);
    free(stamp);
    return kind;
}

/* Processes that a stage starts inherit which one it is. */
void folder_enter_stage(const char *path)
{
    setenv("MUSACODER_STAGE_FOLDER", path, 1);
}

/* True if 'run' has locked this folder for the stage that is this process. */
static bool folder_is_entered(const char *path)
{
    const char *stage = getenv("MUSACODER_STAGE_FOLDER");

    return stage && !strcmp(stage, path);
}

/* The folder in which the stage's lies. */
static bool folder_is_entered_run(const char *path)
{
    const char *stage = getenv("MUSACODER_STAGE_FOLDER");
    size_t n = strlen(path);

    return stage && !strncmp(stage, path, n) && stage[n] == '/';
}

/* A folder of ours that another command of ours fills. */
static int folder_check_kind(const char *path, const char *what, struct err *e)
{
    char *kind = folder_kind(path);
    bool same = !kind || !strcmp(kind, what) || (!strcmp(kind, FOLDER_STAGE) && folder_is_entered(path)) ||
                (!strcmp(what, FOLDER_CURVES) && folder_is_entered_run(path));
    int rc = 0;

    if (!same && folder_holds_something(path))
        rc = err_set(e, ERR_INPUT, "'%s' is a folder of %s; name another one for %s", path, kind, what);
    free(kind);
    return rc;
}

/* Cuts the last part of a full path off; false at the root. */
static bool folder_go_up(char *path)
{
    char *slash = strrchr(path, '/');

    if (!slash || !slash[1])
        return false;
    slash[slash == path] = 0;
    return true;
}

bool folder_lies_in_ours(const char *path)
{
    char *at = path_real(path);
    bool ours = false;

    while (!ours && folder_go_up(at))
        ours = stamp_is_in(at);
    free(at);
    return ours;
}

/* The stage's folder that the path lies in; NULL where there is none, or in its model, beside which a user's files
 * stay. Owned. */
static char *folder_stage_above(const char *path)
{
    char *at = path_real(path);
    bool in_model = false, stage = false;

    while (!stage && folder_go_up(at)) {
        char *kind = stamp_is_in(at) ? folder_kind(at) : NULL;

        if ((stage = kind && !strcmp(kind, FOLDER_STAGE)) && !in_model) {
            free(kind);
            return at;
        }
        in_model = !strcmp(path_name(at), "model");
        free(kind);
    }
    free(at);
    return NULL;
}

/* A stage's folder is filled by its run alone: it empties it. */
int folder_check_above(const char *path, const char *what, struct err *e)
{
    char *above = folder_stage_above(path);
    const char *stage = getenv("MUSACODER_STAGE_FOLDER");
    int rc = 0;

    if (above && !(stage && file_is_same(stage, above)))
        rc = err_set(e, ERR_INPUT, "'%s' lies in the folder of a recipe's stage, which its run empties; name "
                                   "another one for %s", path, what);
    free(above);
    return rc;
}

int folder_claim(const char *path, const char *what, struct err *e)
{
    if (!*path)
        return err_set(e, ERR_INPUT, "the folder's name is empty; name one for %s", what);
    if (folder_holds_something(path) && !stamp_is_in(path)) /* in this order: another may stamp and fill it now */
        return err_set(e, ERR_INPUT, "'%s' holds files that are not of %s; name a new folder, or, if an older version "
                       "wrote it or what is in it may go, 'touch %s/" STAMP_NAME "'", path, what, path);
    if (folder_check_kind(path, what, e) < 0 || (!stamp_is_in(path) && folder_check_above(path, what, e) < 0))
        return -1;
    return folder_stamp(path, what, e);
}

/* The listing is hidden, so that it is no part of what a folder holds for its readers. */
static int folder_drop_listing(const char *path, struct err *e)
{
    char *listing = path_join(path, FOLDER_LISTING);
    int rc = unlink(listing) < 0 && errno != ENOENT ? err_sys(e, "cannot remove '%s'", listing) : 0;

    free(listing);
    return rc;
}

int folder_empty(const char *path, struct err *e)
{
    char **names, *p;
    size_t n;
    int rc = 0;

    if (stamp_check_links(path, e) < 0)
        return -1;
    if (!file_is_dir(path))
        return 0;
    if (!stamp_is_in(path))
        return err_set(e, ERR_INPUT, "'%s' is not a folder of ours and is left as it is; move it away", path);
    if (dir_list(path, &names, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n && rc == 0; i++) {
        p = path_join(path, names[i]);
        rc = dir_remove(p, e);
        free(p);
    }
    names_free(names, n);
    return rc == 0 ? folder_drop_listing(path, e) : -1;
}

/* ---- who works in it ---- */

static bool folder_is_plain_dir(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void folder_sweep_temporaries(const char *path);

/* A folder below with a lock of its own is swept by whoever takes that. */
static void folder_sweep_one(const char *path, const char *name)
{
    char *lock = path_join(path, "lock");

    if (file_is_temporary(name))
        unlink(path);
    else if (folder_is_plain_dir(path) && !file_exists(lock))
        folder_sweep_temporaries(path);
    free(lock);
}

/* Removes the temporaries that writers which are gone left in the folder. */
static void folder_sweep_temporaries(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *de;

    while (d && (de = readdir(d)) != NULL) {
        char *p = path_join(path, de->d_name);

        if (strcmp(de->d_name, ".") && strcmp(de->d_name, ".."))
            folder_sweep_one(p, de->d_name);
        free(p);
    }
    if (d)
        closedir(d);
}

void folder_sweep(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *de;

    while (d && (de = readdir(d)) != NULL)
        if (file_is_temporary(de->d_name))
            unlinkat(dirfd(d), de->d_name, 0);
    if (d)
        closedir(d);
}

int folder_lock(const char *path, const char *what, int *ret_fd, struct err *e)
{
    char *lock = path_join(path, "lock");
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

    free(lock);
    if (fd < 0)
        return err_sys(e, "cannot write into '%s'", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int no = errno;

        close(fd);
        if (no == EWOULDBLOCK)
            return err_set(e, ERR_INPUT, "another '%s' works in '%s'; wait for it, or give another --out", what, path);
        errno = no;
        return err_sys(e, "cannot lock '%s'", path);
    }
    folder_sweep_temporaries(path);
    *ret_fd = fd;
    return 0;
}

int folder_take(const char *path, const char *what, const char *command, int *ret_lock, struct err *e)
{
    return folder_claim(path, what, e) < 0 ? -1 : folder_lock(path, command, ret_lock, e);
}

/* ---- temporary ones ---- */

#define YOUNG_S 60 /* so long a maker may take from the folder to its lock */

/* Nobody holds the lock of what a dead process left. */
static bool folder_is_orphan(const char *dir)
{
    char *lock = path_join(dir, "lock");
    int fd = open(lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    bool orphan = lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();

    if (fd >= 0)
        orphan &= flock(fd, LOCK_EX | LOCK_NB) == 0;
    else
        orphan &= errno == ENOENT && time(NULL) - st.st_mtime > YOUNG_S;
    if (fd >= 0)
        close(fd);
    free(lock);
    return orphan;
}

/* Removes folders base/PREFIX.XXXXXX whose makers are gone. */
static void folder_sweep_orphans(const char *base, const char *prefix)
{
    size_t n, k = strlen(prefix);
    char **names, *path;

    if (dir_list(base, &names, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (!strncmp(names[i], prefix, k) && names[i][k] == '.' && strlen(names[i]) == k + 7) {
            path = path_join(base, names[i]);
            if (folder_is_orphan(path))
                dir_remove(path, NULL);
            free(path);
        }
    names_free(names, n);
}

char *folder_temp(const char *prefix, int *ret_fd, struct err *e)
{
    const char *base = getenv("TMPDIR");
    char *path;

    folder_sweep_orphans(base && *base ? base : "/tmp", prefix);
    if (!(path = dir_temp(prefix, e)))
        return NULL;
    if (folder_lock(path, "musacoder", ret_fd, e) < 0) {
        dir_remove(path, NULL);
        free(path);
        return NULL;
    }
    return path;
}

/* ---- how it gets its name ---- */

/* Flushes a file or folder to the disk; a link has nothing to flush. -1 with errno. */
static int folder_flush_path(const char *path, int flags)
{
    int fd = open(path, flags | O_RDONLY | O_CLOEXEC | O_NOFOLLOW), rc;

    if (fd < 0)
        return errno == ELOOP ? 0 : -1; /* a link has no content */
    rc = fsync(fd);
    rc = rc < 0 && errno == EINVAL ? 0 : rc; /* a file system that cannot */
    close(fd);
    return rc;
}

/* Flushes all files and folders below dir to the disk. -1 with errno. */
static int folder_flush_tree(const char *dir)
{
    char **names, *path;
    struct stat st;
    size_t n;
    int rc = 0;

    if (dir_list(dir, &names, &n, NULL) < 0)
        return -1;
    for (size_t i = 0; i < n && rc == 0; i++) {
        path = path_join(dir, names[i]);
        if (lstat(path, &st) == 0)
            rc = S_ISDIR(st.st_mode) ? folder_flush_tree(path) : S_ISREG(st.st_mode) ? folder_flush_path(path, 0) : 0;
        free(path);
    }
    names_free(names, n);
    return rc < 0 ? -1 : folder_flush_path(dir, O_DIRECTORY);
}

/* Flushes the folder that path stands in, so that a new name lasts. */
static void folder_flush_parent(const char *path)
{
    char *parent = path_folder(path);

    folder_flush_path(parent, O_DIRECTORY);
    free(parent);
}

/* Where the file system cannot exchange two names, the old folder goes aside first. */
static int folder_replace(const char *work, const char *path)
{
    char *aside;
    int rc;

    if (renameat2(AT_FDCWD, work, AT_FDCWD, path, RENAME_EXCHANGE) == 0)
        return dir_remove(work, NULL);
    aside = xasprintf("%s.old.%d", path, (int)getpid());
    rc = rename(path, aside);
    if (rc == 0 && (rc = rename(work, path)) < 0)
        rename(aside, path);
    else if (rc == 0)
        dir_remove(aside, NULL);
    free(aside);
    return rc;
}

int folder_flush(const char *path, struct err *e)
{
    return folder_flush_tree(path) < 0 ? err_sys(e, "cannot flush '%s' to the disk", path) : 0;
}

/* A rule of what a sweep keeps: nothing. */
static bool folder_keep_none(const char *name)
{
    (void)name;
    return false;
}

/* Links or copies 'from' to 'to', unless something is there. */
static int folder_keep_one(const char *from, const char *to, struct err *e)
{
    struct stat st;

    if (lstat(to, &st) == 0)
        return 0;
    if (folder_is_plain_dir(from))
        return dir_make(to, e) < 0 ? -1 : folder_keep(from, to, folder_keep_none, e);
    if (linkat(AT_FDCWD, from, AT_FDCWD, to, 0) == 0) /* a link as a link */
        return 0;
    return file_copy(from, to, e) < 0 ? err_prefix(e, "cannot keep '%s'; move it away", from) : 0;
}

int folder_keep(const char *path, const char *work, bool (*ours)(const char *name), struct err *e)
{
    DIR *d = opendir(path);
    struct dirent *de;
    int rc = 0;

    while (d && rc == 0 && (de = readdir(d)) != NULL) {
        char *from = path_join(path, de->d_name), *to = path_join(work, de->d_name);

        if (strcmp(de->d_name, ".") && strcmp(de->d_name, "..") && !file_is_temporary(de->d_name) &&
            !ours(de->d_name))
            rc = folder_keep_one(from, to, e);
        free(from);
        free(to);
    }
    if (d)
        closedir(d);
    return rc;
}

int folder_commit(const char *work, const char *path, struct err *e)
{
    struct stat st;
    int rc;

    if (folder_flush(work, e) < 0)
        return -1;
    rc = lstat(path, &st) == 0 ? folder_replace(work, path) : rename(work, path);
    if (rc < 0)
        return err_sys(e, "cannot rename '%s' to '%s'", work, path);
    folder_flush_parent(path);
    return 0;
}
