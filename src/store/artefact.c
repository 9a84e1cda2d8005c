/* artefact.c - files named by what they are made from, and the locks that let one maker work while others wait. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/store.h"

#define LOCK_POLL_MS 10

char *artefact_path(const char *folder, const char *key, const char *suffix)
{
    char *dir = xasprintf("%s/%.2s", folder, key), *path = xasprintf("%s/%s%s", dir, strlen(key) > 2 ? key + 2 : key, suffix);

    dir_make(dir, NULL); /* a failure shows when the file is written */
    free(dir);
    return path;
}

int artefact_lock(const char *folder, const char *key, double wait_s, struct err *e)
{
    char *path = artefact_path(folder, key, ".lock");
    double deadline = now_s() + wait_s;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), rc = 0;

    if (fd < 0) {
        err_sys(e, "cannot create lock '%s'", path);
        free(path);
        return -1;
    }
    while (flock(fd, LOCK_EX | LOCK_NB) < 0 && rc == 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            rc = err_sys(e, "cannot lock '%s'", path);
        else if (stop_requested())
            rc = err_set(e, ERR_STOP, "interrupted");
        else if (now_s() > deadline)
            rc = err_set(e, ERR_ENV, "'%s' is still being made by another process after %.0f s", path, wait_s);
        else
            nanosleep(&(struct timespec){.tv_nsec = LOCK_POLL_MS * 1000000L}, NULL);
    }
    free(path);
    if (rc < 0)
        close(fd);
    return rc < 0 ? -1 : fd;
}

void artefact_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}

int artefact_publish(const char *from, const char *to, struct err *e)
{
    if (rename(from, to) == 0)
        return 0;
    if (errno != EXDEV)
        return err_sys(e, "cannot move '%s' to '%s'", from, to);
    if (file_copy(from, to, e) < 0)
        return -1;
    unlink(from);
    return 0;
}
