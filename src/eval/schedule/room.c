/* room.c - see room.h. */
#include "eval/schedule/room.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"
#include "exec/plan.h"
#include "store/store.h"

#define SLOTS 512
#define LEDGER_BYTE ((off_t)1 << 30) /* its lock: of the records; of byte i: record i's owner */
#define POLL_NS 100000000L
#define MAKE_ROOM_EVERY 10 /* polls */

/* ---- who may come in ---- */

enum place { DEVICE, HOST, BLIND /* of the device, blind claims alone */ };

static uint64_t part_of(const struct room_claim *c, enum place p, bool shared)
{
    if (p != HOST)
        return shared ? c->shared : c->own;
    return shared ? c->host_shared : c->host_own;
}

/* The claims that a sum is over: those that are in, and 'who'; on one device, or on the machine. */
static bool counts(const struct room_claim *c, int i, int who, enum place p, uint64_t device)
{
    return (c[i].state == ROOM_IN || i == who) && (p == HOST || c[i].device == device) && (p != BLIND || c[i].blind);
}

/* What claim i adds for its group: the most that one of them wants, if it is the first of them. */
static uint64_t group_share(const struct room_claim *c, int n, int i, int who, enum place p, uint64_t device)
{
    uint64_t most = 0;

    for (int k = 0; k < n; k++) {
        if (c[k].group != c[i].group || !counts(c, k, who, p, device))
            continue;
        if (k < i)
            return 0;
        most = part_of(&c[k], p, true) > most ? part_of(&c[k], p, true) : most;
    }
    return most;
}

static uint64_t sum_of(const struct room_claim *c, int n, int who, enum place p, uint64_t device)
{
    uint64_t sum = 0;

    for (int i = 0; i < n; i++)
        if (counts(c, i, who, p, device))
            sum += part_of(&c[i], p, false) + group_share(c, n, i, who, p, device);
    return sum;
}

struct room_budget room_sum(const struct room_claim *c, int n, int who, uint64_t device)
{
    return (struct room_budget){sum_of(c, n, who, DEVICE, device), sum_of(c, n, who, HOST, 0)};
}

/* Beside those that are in, or where nobody is. */
static bool fits(const struct room_claim *c, int n, int who, enum place p, uint64_t budget)
{
    for (int i = 0; i < n; i++)
        if (i != who && counts(c, i, -1, p, c[who].device))
            return sum_of(c, n, who, p, c[who].device) <= budget;
    return true;
}

static bool fits_host(const struct room_claim *c, int n, int who, const struct room_budget *b)
{
    return !b->host || fits(c, n, who, HOST, b->host);
}

static bool fits_both(const struct room_claim *c, int n, int who, const struct room_budget *b)
{
    return fits(c, n, who, DEVICE, b->device) && fits_host(c, n, who, b) &&
           (!c[who].blind || fits(c, n, who, BLIND, b->device / 100 * ROOM_BLIND));
}

/* budget: of its device. */
static bool wants_all(const struct room_claim *c, uint64_t budget)
{
    return c->own >= budget || c->host_own >= ROOM_ALL;
}

static bool is_small(const struct room_claim *c, uint64_t budget)
{
    return c->own + c->shared <= budget / ROOM_SMALL && c->host_own < ROOM_ALL;
}

/* Do large claims that are in keep claim i out, whatever small ones do? */
static bool kept_out_by_large(const struct room_claim *c, int n, int i, uint64_t budget)
{
    struct room_claim *large = xmalloc((size_t)n * sizeof *large);
    bool fit;

    memcpy(large, c, (size_t)n * sizeof *large);
    for (int k = 0; k < n; k++)
        if (k != i && is_small(&c[k], budget))
            large[k].state = 0;
    fit = fits(large, n, i, DEVICE, budget);
    free(large);
    return !fit;
}

/* For how long one that waits, for everything or not, is overtaken by one that is small or not. */
static double is_overtaken_s(bool all, bool small)
{
    return all ? ROOM_PASS_ALL_S : small ? ROOM_PASS_SMALL_S : ROOM_PASS_S;
}

bool room_admits(const struct room_claim *c, int n, int who, const struct room_budget *b, double now)
{
    bool small = is_small(&c[who], b->device);

    if (!fits_both(c, n, who, b)) /* most of the time: what follows takes longer */
        return false;
    for (int i = 0; i < n; i++) {
        bool here = c[i].device == c[who].device, all = wants_all(&c[i], here ? b->device : UINT64_MAX);

        if (c[i].state != ROOM_WAITS || c[i].ticket >= c[who].ticket || now - c[i].since < is_overtaken_s(all, small) ||
            !(here || !fits_host(c, n, i, b)))
            continue;
        if (small && here && !all && kept_out_by_large(c, n, i, b->device))
            continue; /* it gains nothing if small ones wait too */
        return false;
    }
    return true;
}

static size_t at_most(uint64_t n, size_t most)
{
    return most && n > most ? most : (size_t)n;
}

static size_t at_least(uint64_t n, size_t least)
{
    return n < least ? least : (size_t)n;
}

struct room_need room_expect(const struct room_need *seen, const struct room_budget *b, const struct room_need *most)
{
    struct room_need n = seen ? *seen : (struct room_need){0};
    size_t process = b->host ? ROOM_PROCESS_BYTES : 0, context = at_most(b->device / 8, ROOM_CONTEXT_BYTES);

    n.blind = !n.own || !n.shared;
    n.own = n.own ? n.own : at_most(ROOM_CONTEXT_BYTES + b->device / 128, at_least(b->device / 32, context));
    n.shared = n.shared ? n.shared : at_most(ROOM_CONTEXT_BYTES + b->device / 64, b->device / 16);
    if (!n.host_own)
        n.host_own = at_most(n.host_shared ? n.host_shared : process, most->host_own);
    if (!n.host_shared)
        n.host_shared = at_most(process, most->host_shared);
    return n;
}

struct room_need room_estimate(size_t state, size_t in, size_t out)
{
    const struct plan_sizes s = {.inputs = in, .state = state, .outputs = out};
    struct plan p;

    memory_plan_make(&s, SIZE_MAX, &p);
    return (struct room_need){.own = ROOM_CONTEXT_BYTES + 2 * p.least,
                              .shared = p.judge + (p.reference > p.timing ? p.reference : p.timing)};
}

uint64_t room_host_budget(uint64_t left)
{
    return left / 4 * 3;
}

/* ---- the ledger ---- */

struct ledger {
    uint64_t host; /* the machine's budget, of the time when nobody was in */
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

/* One for all devices of the machine; its name says what its records look like. */
static int ledger_open(struct err *e)
{
    char *folder = path_cache("device"), path[4096];
    int fd = -1;

    snprintf(path, sizeof path, "%s/rooms.%zu", folder, sizeof(struct ledger));
    if (dir_make(folder, e) == 0 && (fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666)) < 0)
        err_sys(e, "cannot open '%s'", path);
    free(folder);
    return fd;
}

/* Locks and reads; claims of the dead are taken out (in memory). mine: a record whose lock is ours, or -1. */
static int ledger_begin(int fd, int mine, struct ledger *l, struct err *e)
{
    memset(l, 0, sizeof *l);
    if (byte_lock(fd, LEDGER_BYTE, F_WRLCK, true) < 0)
        return err_sys(e, "cannot lock the ledger of memory");
    if (pread(fd, l, sizeof *l, 0) < 0) {
        err_sys(e, "cannot read the ledger of memory");
        byte_lock(fd, LEDGER_BYTE, F_UNLCK, false);
        return -1;
    }
    for (int i = 0; i < SLOTS; i++)
        if (l->c[i].state && i != mine && !owner_lives(fd, i))
            l->c[i].state = 0;
    return 0;
}

static int ledger_end(int fd, const struct ledger *l, struct err *e)
{
    int rc = 0;

    if (l && pwrite(fd, l, sizeof *l, 0) != (ssize_t)sizeof *l)
        rc = err_sys(e, "cannot write the ledger of memory");
    byte_lock(fd, LEDGER_BYTE, F_UNLCK, false);
    return rc;
}

static uint64_t device_key(const char *device)
{
    return hash64(device, strlen(device), 3);
}

static bool anybody_in(const struct ledger *l)
{
    for (int i = 0; i < SLOTS; i++)
        if (l->c[i].state == ROOM_IN)
            return true;
    return false;
}

/* A record of our own, waiting: mine, with a ticket. Its index, or -1. */
static int join(int fd, struct room_claim mine, uint64_t host, struct err *e)
{
    struct ledger l;
    int slot = 0;

    if (ledger_begin(fd, -1, &l, e) < 0)
        return -1;
    for (int i = 0; i < SLOTS; i++)
        mine.ticket = l.c[i].state && l.c[i].ticket > mine.ticket ? l.c[i].ticket : mine.ticket;
    mine.ticket++;
    while (slot < SLOTS && (l.c[slot].state || byte_lock(fd, slot, F_WRLCK, false) < 0))
        slot++;
    if (slot == SLOTS) {
        ledger_end(fd, NULL, NULL);
        return err_set(e, ERR_ENV, "more than %d jobs wait for a device", SLOTS);
    }
    if (!anybody_in(&l))
        l.host = host;
    l.c[slot] = mine;
    return ledger_end(fd, &l, e) < 0 ? -1 : slot;
}

/* 1: we are in; 0: not yet. */
static int try_once(int fd, int slot, uint64_t budget, struct err *e)
{
    struct ledger l;
    bool in;

    if (ledger_begin(fd, slot, &l, e) < 0)
        return -1;
    in = room_admits(l.c, SLOTS, slot, &(struct room_budget){budget, l.host}, now_s());
    if (in)
        l.c[slot].state = ROOM_IN;
    return ledger_end(fd, in ? &l : NULL, e) < 0 ? -1 : in;
}

int room_take(const char *device, const struct room_budget *b, const struct room_need *need, uint64_t group,
              void (*make_room)(void *ctx), void *ctx, struct room *r, struct err *e)
{
    uint64_t pid = (uint64_t)getpid(), key[2] = {pid, group};
    struct room_claim mine = {.state = ROOM_WAITS, .own = need->own, .shared = need->shared, .host_own = need->host_own,
                              .host_shared = need->host_shared, .device = device_key(device), .blind = need->blind,
                              .group = hash64(key, sizeof key, 1), .since = now_s()};
    int fd = ledger_open(e), in = -1;

    if (fd < 0)
        return -1;
    if ((r->slot = join(fd, mine, b->host, e)) >= 0)
        in = try_once(fd, r->slot, b->device, e);
    for (int i = 0; in == 0; i++) {
        if (stop_requested()) {
            in = err_set(e, ERR_STOP, "interrupted");
            break;
        }
        if (make_room && i % MAKE_ROOM_EVERY == 0)
            make_room(ctx);
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
        in = try_once(fd, r->slot, b->device, e);
    }
    if (in < 0) {
        close(fd);
        return -1;
    }
    r->fd = fd + 1;
    r->budget = b->device;
    r->need = *need;
    return 0;
}

static void raise_to(size_t *n, size_t seen, bool *more)
{
    if (seen > *n) {
        *n = seen;
        *more = true;
    }
}

/* Of each number the larger one. Was any of 'seen' larger? */
static bool raise_need(struct room_need *n, const struct room_need *seen)
{
    bool more = false;

    raise_to(&n->own, seen->own, &more);
    raise_to(&n->shared, seen->shared, &more);
    raise_to(&n->host_own, seen->host_own, &more);
    raise_to(&n->host_shared, seen->host_shared, &more);
    return more;
}

bool room_is_large(const struct room *r)
{
    return r->fd && r->need.own + r->need.shared > r->budget / ROOM_SMALL + 2 * ROOM_CONTEXT_BYTES;
}

bool room_covers(const struct room_need *have, const struct room_need *need)
{
    struct room_need n = *have;

    return !raise_need(&n, need);
}

/* Claims 'want' instead; false: it must fit, and does not. */
static bool claim_instead(struct room *r, const struct room_need *want, bool must_fit)
{
    struct err e = ERR_INIT;
    struct ledger l;
    struct room_claim *c;
    bool in;

    if (ledger_begin(r->fd - 1, r->slot, &l, &e) < 0) {
        log_debug("room on the device: %s", e.msg);
        return true; /* as without a ledger */
    }
    c = &l.c[r->slot];
    c->blind = 0;
    c->own = want->own;
    c->shared = want->shared;
    c->host_own = want->host_own;
    c->host_shared = want->host_shared;
    in = !must_fit || fits_both(l.c, SLOTS, r->slot, &(struct room_budget){r->budget, l.host});
    if (ledger_end(r->fd - 1, in ? &l : NULL, &e) < 0)
        log_debug("room on the device: %s", e.msg);
    if (in)
        r->need = *want;
    return in;
}

bool room_grow(struct room *r, const struct room_need *need)
{
    struct room_need want = r->need;

    return !raise_need(&want, need) || !r->fd || claim_instead(r, &want, true);
}

static void lower_to(size_t *x, size_t need, bool *less)
{
    if (need && need < *x)
        *x = need, *less = true;
}

void room_shrink(struct room *r, const struct room_need *need)
{
    struct room_need want = r->need;
    bool less = false;

    if (!r->fd || want.own >= r->budget || want.host_own >= ROOM_ALL)
        return;
    if (!r->wide)
        lower_to(&want.own, need->own, &less);
    lower_to(&want.shared, need->shared, &less);
    lower_to(&want.host_own, need->host_own, &less);
    lower_to(&want.host_shared, need->host_shared, &less);
    if (less)
        claim_instead(r, &want, false);
}

void room_drop(struct room *r)
{
    if (r->fd)
        close(r->fd - 1); /* the record's lock goes with it, and so it counts no more */
    *r = (struct room){0};
}

bool room_wanted(const char *device, uint64_t budget)
{
    uint64_t key = device_key(device);
    int fd = ledger_open(NULL);
    struct ledger l;
    bool wanted = false;

    if (fd < 0)
        return false;
    if (ledger_begin(fd, -1, &l, NULL) == 0)
        for (int i = 0; i < SLOTS; i++)
            wanted = wanted || (l.c[i].state && wants_all(&l.c[i], l.c[i].device == key ? budget : UINT64_MAX));
    close(fd);
    return wanted;
}

/* ---- what tasks need ---- */

#define SEEN ".room"
#define ESTIMATED ".estimate"

static char *note_path(const char *task, const char *protocol, const char *suffix)
{
    char *folder = path_cache("reference"), *path, key[65];
    struct sha256 h;

    sha256_start(&h);
    sha256_adds(&h, task);
    sha256_adds(&h, protocol);
    sha256_end(&h, key);
    path = artefact_path(folder, key, suffix);
    free(folder);
    return path;
}

/* Those written before the machine's memory was counted have two numbers. */
static bool read_note(const char *task, const char *protocol, const char *suffix, struct room_need *ret)
{
    char *path = note_path(task, protocol, suffix);
    struct room_need n = {0};
    struct buf b;
    bool known;

    buf_init(&b, 128);
    known = file_exists(path) && file_read(path, &b, NULL) == 0 && b.n &&
            sscanf(b.p, "%zu %zu %zu %zu", &n.own, &n.shared, &n.host_own, &n.host_shared) >= 2;
    if (known)
        *ret = n;
    buf_free(&b);
    free(path);
    return known;
}

static pthread_mutex_t note_lock = PTHREAD_MUTEX_INITIALIZER; /* one writer of a process at a time */

/* Under note_lock. */
static void raise_note(const char *task, const char *protocol, const char *suffix, const struct room_need *need)
{
    struct room_need n = {0};
    char *path, text[128];
    struct err e = ERR_INIT;

    read_note(task, protocol, suffix, &n);
    if (!raise_need(&n, need))
        return;
    path = note_path(task, protocol, suffix);
    snprintf(text, sizeof text, "%zu %zu %zu %zu\n", n.own, n.shared, n.host_own, n.host_shared);
    if (file_write(path, text, strlen(text), &e) < 0)
        log_debug("a task's need of memory: %s", e.msg);
    free(path);
}

static void write_note(const char *task, const char *protocol, const char *suffix, const struct room_need *need)
{
    pthread_mutex_lock(&note_lock);
    raise_note(task, protocol, suffix, need);
    pthread_mutex_unlock(&note_lock);
}

static size_t first_of(size_t seen, size_t estimated)
{
    return seen ? seen : estimated;
}

bool room_recall(const char *task, const char *protocol, struct room_need *ret)
{
    struct room_need n = {0}, guess = {0};
    bool seen = read_note(task, protocol, SEEN, &n), estimated = read_note(task, protocol, ESTIMATED, &guess);

    if (!seen && !estimated)
        return false;
    *ret = (struct room_need){first_of(n.own, guess.own), first_of(n.shared, guess.shared),
                              first_of(n.host_own, guess.host_own), first_of(n.host_shared, guess.host_shared),
                              false};
    return true;
}

void room_note(const char *task, const char *protocol, const struct room_need *need)
{
    write_note(task, protocol, SEEN, need);
}

void room_note_estimate(const char *task, const char *protocol, const struct room_need *need)
{
    write_note(task, protocol, ESTIMATED, need);
}
