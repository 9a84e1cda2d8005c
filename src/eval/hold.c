/* hold.c - see hold.h. A taker passes the gate first, one at a time; who will be alone keeps the gate closed behind it
 * until the sharers inside have left. */
#include "eval/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

static int open_file(const char *folder, const char *device, const char *suffix, struct err *e)
{
    char path[4096];
    int fd;

    snprintf(path, sizeof path, "%s/%s.%s", folder, *device ? device : "device", suffix);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    return fd < 0 ? err_sys(e, "cannot open '%s'", path) : fd;
}

static int lock_file(int fd, int how, struct err *e)
{
    while (flock(fd, how) < 0) {
        if (errno != EINTR)
            return err_sys(e, "cannot lock a device");
        if (stop_requested())
            return err_set(e, ERR_STOP, "interrupted");
    }
    return 0;
}

/* What this thread holds: how often, and of which device. */
static _Thread_local struct {
    int depth;
    char device[128];
} mine;

int hold_take(const char *device, bool alone, struct hold *h, struct err *e)
{
    char *folder;
    int gate = -1, fd = -1, rc;

    if (mine.depth && (alone || strcmp(mine.device, device)))
        return err_set(e, ERR_BUG, "a thread that holds device '%s' asks for '%s'", mine.device, device);
    if (mine.depth) {
        mine.depth++;
        h->fd = -1;
        return 0;
    }
    folder = path_cache("device");
    rc = dir_make(folder, e);
    if (rc == 0 && (gate = open_file(folder, device, "gate", e)) >= 0 && (fd = open_file(folder, device, "lock", e)) >= 0 &&
        lock_file(gate, LOCK_EX, e) == 0 && lock_file(fd, alone ? LOCK_EX : LOCK_SH, e) == 0)
        h->fd = fd + 1, mine.depth = 1;
    else
        rc = -1;
    if (gate >= 0)
        close(gate);
    if (rc < 0 && fd >= 0)
        close(fd);
    snprintf(mine.device, sizeof mine.device, "%s", device);
    free(folder);
    return rc;
}

bool hold_wanted(const char *device)
{
    char *folder = path_cache("device");
    int gate = open_file(folder, device, "gate", NULL);
    bool wanted = gate >= 0 && flock(gate, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;

    if (gate >= 0)
        close(gate);
    free(folder);
    return wanted;
}

void hold_drop(struct hold *h)
{
    if (h->fd > 0)
        close(h->fd - 1);
    mine.depth -= h->fd != 0;
    h->fd = 0;
}
