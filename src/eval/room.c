/* room.c - see room.h. */
#include "eval/room.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "store/store.h"

#define SLOTS 512
#define LEDGER_BYTE ((off_t)1 << 30) /* its lock: of the records; of byte i: record i's owner */
#define POLL_NS 100000000L
#define MAKE_ROOM_EVERY 10 /* polls */

/* ---- who may come in ---- */

static bool first_of_group(const struct room_claim *c, int i)
{
    for (int k = 0; k < i; k++)
        if (c[k].state == ROOM_IN && c[k].group == c[i].group)
            return false;
    return true;
}

/* The most that a claim of the group wants, of those that are in and of 'who'. */
static uint64_t group_share(const struct room_claim *c, int n, int who, uint64_t group)
{
    uint64_t most = 0;

    for (int i = 0; i < n; i++)
        if ((c[i].state == ROOM_IN || i == who) && c[i].group == group && c[i].shared > most)
            most = c[i].shared;
    return most;
}

uint64_t room_sum(const struct room_claim *c, int n, int who)
{
    bool with_others = who < 0;
    uint64_t sum = who >= 0 ? c[who].own : 0;

    for (int i = 0; i < n; i++) {
        if (c[i].state != ROOM_IN || i == who)
            continue;
        sum += c[i].own + (first_of_group(c, i) ? group_share(c, n, who, c[i].group) : 0);
        with_others = with_others || c[i].group == c[who].group;
    }
    return sum + (with_others ? 0 : c[who].shared);
}

bool room_admits(const struct room_claim *c, int n, int who, uint64_t budget, double now)
{
    bool empty = true;

    for (int i = 0; i < n; i++) {
        if (c[i].state == ROOM_WAITS && c[i].ticket < c[who].ticket && now - c[i].since >= ROOM_PASS_S)
            return false;
        empty = empty && (c[i].state != ROOM_IN || i == who);
    }
    return empty || room_sum(c, n, who) <= budget;
}

/* ---- the ledger ---- */

struct ledger {
    struct room_claim c[SLOTS];
};

/* A lock of this open file, on one byte: gone when it is closed, which the kernel does for the dead. */
static int byte_lock(int fd, off_t at, int type, bool wait)
{
    struct flock l = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    int rc;

    while ((rc = fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &l)) < 0 && errno == EINTR && !stop_requested())
        ;
    return rc;
}

static bool owner_lives(int fd, int slot)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};

    return fcntl(fd, F_OFD_GETLK, &l) < 0 || l.l_type != F_UNLCK;
}

static int ledger_open(const char *device, struct err *e)
{
    char *folder = path_cache("device"), path[4096];
    int fd = -1;

    snprintf(path, sizeof path, "%s/%s.room", folder, *device ? device : "device");
    if (dir_make(folder, e) == 0 && (fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666)) < 0)
        err_sys(e, "cannot open '%s'", path);
    free(folder);
    return fd;
}

/* Locks and reads; claims of the dead are taken out (in memory). mine: a record whose lock is ours, or -1. */
static int ledger_begin(int fd, int mine, struct ledger *l, struct err *e)
{
    memset(l, 0, sizeof *l);
    if (byte_lock(fd, LEDGER_BYTE, F_WRLCK, true) < 0 || pread(fd, l, sizeof *l, 0) < 0)
        return err_sys(e, "cannot read the ledger of a device's memory");
    for (int i = 0; i < SLOTS; i++)
        if (l->c[i].state && i != mine && !owner_lives(fd, i))
            l->c[i].state = 0;
    return 0;
}

static int ledger_end(int fd, const struct ledger *l, struct err *e)
{
    int rc = 0;

    if (l && pwrite(fd, l, sizeof *l, 0) != (ssize_t)sizeof *l)
        rc = err_sys(e, "cannot write the ledger of a device's memory");
    byte_lock(fd, LEDGER_BYTE, F_UNLCK, false);
    return rc;
}

/* A record of our own, waiting. Its index, or -1. */
static int join(int fd, const struct room_need *need, uint64_t group, struct err *e)
{
    struct ledger l;
    uint64_t last = 0;
    int slot = 0;

    if (ledger_begin(fd, -1, &l, e) < 0)
        return -1;
    for (int i = 0; i < SLOTS; i++)
        last = l.c[i].state && l.c[i].ticket > last ? l.c[i].ticket : last;
    while (slot < SLOTS && (l.c[slot].state || byte_lock(fd, slot, F_WRLCK, false) < 0))
        slot++;
    if (slot == SLOTS) {
        ledger_end(fd, NULL, NULL);
        return err_set(e, ERR_ENV, "more than %d jobs wait for a device", SLOTS);
    }
    l.c[slot] = (struct room_claim){ROOM_WAITS, last + 1, need->own, need->shared, group, now_s()};
    return ledger_end(fd, &l, e) < 0 ? -1 : slot;
}

/* 1: we are in; 0: not yet. */
static int try_once(int fd, int slot, uint64_t budget, struct err *e)
{
    struct ledger l;
    bool in;

    if (ledger_begin(fd, slot, &l, e) < 0)
        return -1;
    in = room_admits(l.c, SLOTS, slot, budget, now_s());
    if (in)
        l.c[slot].state = ROOM_IN;
    return ledger_end(fd, in ? &l : NULL, e) < 0 ? -1 : in;
}

int room_take(const char *device, uint64_t budget, const struct room_need *need, uint64_t group,
              void (*make_room)(void *ctx), void *ctx, struct room *r, struct err *e)
{
    uint64_t pid = (uint64_t)getpid(), key[2] = {pid, group};
    int fd = ledger_open(device, e), in = -1;

    if (fd < 0)
        return -1;
    if ((r->slot = join(fd, need, hash64(key, sizeof key, 1), e)) >= 0)
        in = try_once(fd, r->slot, budget, e);
    for (int i = 0; in == 0; i++) {
        if (stop_requested()) {
            in = err_set(e, ERR_STOP, "interrupted");
            break;
        }
        if (make_room && i % MAKE_ROOM_EVERY == 0)
            make_room(ctx);
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
        in = try_once(fd, r->slot, budget, e);
    }
    if (in < 0) {
        close(fd);
        return -1;
    }
    r->fd = fd + 1;
    return 0;
}

void room_drop(struct room *r)
{
    if (r->fd)
        close(r->fd - 1); /* the record's lock goes with it, and so it counts no more */
    *r = (struct room){0};
}

bool room_wanted(const char *device, uint64_t budget)
{
    int fd = ledger_open(device, NULL);
    struct ledger l;
    bool wanted = false;

    if (fd < 0)
        return false;
    if (ledger_begin(fd, -1, &l, NULL) == 0)
        for (int i = 0; i < SLOTS; i++)
            wanted = wanted || (l.c[i].state && l.c[i].own >= budget);
    close(fd);
    return wanted;
}

/* ---- what tasks need ---- */

static char *note_path(const char *task, const char *protocol)
{
    char *folder = path_cache("reference"), *path, key[65];
    struct sha256 h;

    sha256_start(&h);
    sha256_adds(&h, task);
    sha256_adds(&h, protocol);
    sha256_end(&h, key);
    path = artefact_path(folder, key, ".room");
    free(folder);
    return path;
}

bool room_recall(const char *task, const char *protocol, struct room_need *ret)
{
    char *path = note_path(task, protocol);
    uint64_t own = 0, shared = 0;
    struct buf b;
    bool known;

    buf_init(&b, 128);
    known = file_exists(path) && file_read(path, &b, NULL) == 0 && b.n &&
            sscanf(b.p, "%" SCNu64 " %" SCNu64, &own, &shared) == 2;
    if (known)
        *ret = (struct room_need){own, shared};
    buf_free(&b);
    free(path);
    return known;
}

void room_note(const char *task, const char *protocol, const struct room_need *need)
{
    struct room_need old, n = *need;
    char *path, text[64];
    struct err e = ERR_INIT;

    if (room_recall(task, protocol, &old)) {
        if (old.own >= n.own && old.shared >= n.shared)
            return;
        n.own = old.own > n.own ? old.own : n.own;
        n.shared = old.shared > n.shared ? old.shared : n.shared;
    }
    path = note_path(task, protocol);
    snprintf(text, sizeof text, "%zu %zu\n", n.own, n.shared);
    if (file_write(path, text, strlen(text), &e) < 0)
        log_debug("a task's need of memory: %s", e.msg);
    free(path);
}
