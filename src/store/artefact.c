/* artefact.c - files named by what they are made from, and the locks that let one maker work while others wait. */
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
#include "base/log.h"
#include "base/mem.h"
#include "store/store.h"

#define LOCK_POLL_MS 10

char *artefact_path(const char *folder, const char *key, const char *suffix)
{
    char *dir = xasprintf("%s/%.2s", folder, key),
        *path = xasprintf("%s/%s%s", dir, strlen(key) > 2 ? key + 2 : key, suffix);

    dir_make(dir, NULL); /* a failure shows when the file is written */
    free(dir);
    return path;
}

static bool artefact_same_file(int fd, const char *path)
{
    struct stat a, b;

    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* One try: 1 and the descriptor, 0 if it is held, -1. */
static int artefact_try_lock(const char *path, int *ret_fd, struct err *e)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), rc = 1;

    if (fd < 0)
        return err_sys(e, "cannot create lock '%s'", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        rc = errno == EWOULDBLOCK || errno == EINTR ? 0 : err_sys(e, "cannot lock '%s'", path);
    else if (!artefact_same_file(fd, path)) /* its last holder removed it */
        rc = 0;
    if (rc == 1)
        *ret_fd = fd;
    else
        close(fd);
    return rc;
}

int lock_file(const char *path, double wait_s, struct err *e)
{
    double deadline = now_s() + wait_s;
    int fd = -1, rc;

    while ((rc = artefact_try_lock(path, &fd, e)) == 0) {
        if (stop_requested())
            return err_set(e, ERR_STOP, "interrupted");
        if (now_s() >= deadline)
            return err_set(e, ERR_ENV, "'%s' is still being made by another process after %.0f s", path, wait_s);
        nanosleep(&(struct timespec){.tv_nsec = LOCK_POLL_MS * 1000000L}, NULL);
    }
    return rc < 0 ? -1 : fd;
}

int artefact_lock(const char *folder, const char *key, double wait_s, struct err *e)
{
    char *path = artefact_path(folder, key, ".lock");
    int fd = lock_file(path, wait_s, e);

    free(path);
    return fd;
}

void artefact_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}
