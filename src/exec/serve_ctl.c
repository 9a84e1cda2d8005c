/* serve_ctl.c - the judge's requests: recordings, images, values, marks. Each waits for what the client asked before.
 * serve_ctl_do_NAME does CTL_NAME of ctl.h; its reply is in c->r. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/dtype.h"
#include "base/hash.h"
#include "base/mem.h"
#include "exec/ctl.h"
#include "exec/exec.h"
#include "exec/fdpass.h"
#include "exec/exec_server.h"

struct ctl {
    struct exec_server *s;
    struct ctl_request q;
    struct ctl_reply r;
    int fds[FDPASS_MAX]; /* came with the request */
    int out[2], n_out;   /* go with the answer */
};

/* ERR_INPUT with these words. Always -1. */
static int serve_ctl_no(struct err *e, const char *what)
{
    return err_set(e, ERR_INPUT, "%s", what);
}

static int serve_ctl_do_hello(struct ctl *c, struct err *e)
{
    (void)e;
    memcpy(c->s->bulk, &c->s->info, sizeof c->s->info);
    return 0;
}

/* CTL_CONTEXT: a new client begins; whatever the one before left is gone. */
static int serve_ctl_do_context(struct ctl *c, struct err *e)
{
    struct exec_server *s = c->s;

    play_queue_drain(&s->queue);
    ring_close(&s->ring);
    context_clear(&s->context);
    s->context.pool.limit = c->q.a && c->q.a < s->info.memory ? c->q.a : s->info.memory;
    images_clear(&s->images);
    play_queue_reset(&s->queue);
    s->replay.on = s->paused = false;
    s->player.high = 0;
    s->changed = 0;
    saved_drop(s);
    player_poison(&s->player, 0xff);
    s->player.poisons = true;
    s->player.no_launches = s->player.drains = s->dry = false;
    s->unanswered = 0;
    if (player_fresh(&s->player, e) < 0)
        return -1;
    shared_clear(s);
    if (ring_open(&s->ring, &s->info, e) < 0)
        return -1;
    c->out[0] = s->ring.area_fd, c->out[1] = s->ring.bell, c->n_out = 2;
    return 0;
}

/* SHA-256 as 32 bytes. */
static void serve_ctl_hash_bytes(const void *p, size_t n, uint8_t out[32])
{
    char hex[65];

    sha256_hex(p, n, hex);
    for (int i = 0; i < 32; i++) {
        const char pair[3] = {hex[2 * i], hex[2 * i + 1], 0};

        out[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
}

/* CTL_IMAGE: takes a compiled image from the descriptor; its SHA-256 goes back. */
static int serve_ctl_do_image(struct ctl *c, struct err *e)
{
    struct images *all = &c->s->images;
    struct image im = {.n = c->q.a};

    if (!im.n || im.n > (size_t)1 << 30 || c->fds[0] < 0)
        return serve_ctl_no(e, "an image of no bytes, or of more than 1 GiB");
    im.p = xmalloc(im.n);
    if (pread(c->fds[0], im.p, im.n, 0) != (ssize_t)im.n)
        return free(im.p), err_sys(e, "cannot read an image");
    serve_ctl_hash_bytes(im.p, im.n, im.sha256);
    memcpy(c->r.sha256, im.sha256, sizeof im.sha256);
    if (images_find(all, im.sha256))
        return free(im.p), 0;
    all->v = xrealloc(all->v, (all->n + 1) * sizeof *all->v);
    all->v[all->n++] = im;
    return 0;
}

/* ---- values ---- */

/* CTL_ALLOC: an allocation of the judge's; its address goes back in v[0]. */
static int serve_ctl_do_alloc(struct ctl *c, struct err *e)
{
    struct exec_server *s = c->s;
    struct log_give m = {0, c->q.a};

    serve_settle(s);
    if (!(m.addr = m.n ? pool_take(&s->context.pool, m.n, POOL_JUDGE, 0) : 0)) {
        err_set(e, ERR_ENV, "no %llu bytes of device memory are left", (unsigned long long)m.n);
        return err_lack(e, LACK_DEVICE);
    }
    serve_log_own(s, LOG_GIVE, &m, sizeof m);
    play_queue_go(&s->queue);
    c->r.v[0] = m.addr;
    return 0;
}

/* CTL_BIND: writes the judge's values from the bulk area into an allocation, and logs it as inputs. */
static int serve_ctl_do_bind(struct ctl *c, struct err *e)
{
    struct exec_server *s = c->s;
    const struct log_binding m = {c->q.a, c->q.d, c->q.tag, s->context.call};

    if (!s->replay.on)
        serve_settle(s);
    if (c->q.b > CTL_BULK || !serve_holds(s, c->q.a + c->q.c, c->q.b) || !serve_holds(s, c->q.a, c->q.d))
        return serve_ctl_no(e, "values do not lie within one allocation");
    if (!s->replay.on && c->q.c == 0) {
        serve_log_own(s, LOG_BIND, &m, sizeof m);
        if (!s->context.calls)
            context_bound(&s->context, m.addr, m.n);
        play_queue_go(&s->queue);
        play_queue_drain(&s->queue);
    }
    if (!s->player.error)
        s->player.error = s->ops->write(s->b, c->q.a + c->q.c, s->bulk, c->q.b, BACKEND_STREAM_LEGACY);
    return 0;
}

static int serve_ctl_do_share(struct ctl *c, struct err *e)
{
    serve_settle(c->s);
    return shared_add(c->s, &c->q, c->fds[0], &c->r, e);
}

static int serve_ctl_do_bound(struct ctl *c, struct err *e)
{
    return shared_bound(c->s, &c->q, e);
}

static int serve_ctl_do_pull(struct ctl *c, struct err *e)
{
    return shared_pull(c->s, &c->q, e);
}

/* CTL_TILE: copies a strided tile into shared memory. The next ones carry out their requests; -1 with e refuses. */
static int serve_ctl_do_tile(struct ctl *c, struct err *e)
{
    struct wire_strided m;

    memcpy(&m, c->s->bulk, sizeof m);
    return shared_tile(c->s, &m, c->q.a, e);
}

/* CTL_RANDOM: fills memory with drawn values, on the device itself. */
static int serve_ctl_do_random(struct ctl *c, struct err *e)
{
    struct exec_server *s = c->s;
    struct wire_random m;
    struct log_binding l = {.tag = c->q.tag, .call = s->context.call};
    const struct wire_request q = {.head = {.op = WIRE_RANDOM}};
    struct wire_request r = q;
    uint64_t none;

    memcpy(&m, s->bulk, sizeof m);
    r.body.RANDOM = m;
    l.addr = m.addr, l.n = m.count;
    if (s->replay.on)
        return serve_ctl_no(e, "not in a replay");
    serve_settle(s);
    if (context_take(&s->context, &r, &none))
        return serve_ctl_no(e, s->context.why);
    serve_log_own(s, LOG_BIND, &l, sizeof l);
    play_queue_go(&s->queue);
    play_queue_drain(&s->queue);
    if (!s->player.error)
        s->player.error = s->ops->random(s->b, &m, BACKEND_STREAM_LEGACY);
    return 0;
}

/* CTL_PEEK: device bytes go back in the bulk area. */
static int serve_ctl_do_peek(struct ctl *c, struct err *e)
{
    struct exec_server *s = c->s;
    int code;

    if (!s->replay.on)
        serve_settle(s);
    if (c->q.b > CTL_BULK || !serve_holds(s, c->q.a, c->q.b))
        return serve_ctl_no(e, "what should be looked at does not lie within one allocation");
    if ((code = player_sync(&s->player)) || (code = s->ops->read(s->b, s->bulk, c->q.a, c->q.b)))
        return err_set(e, ERR_INPUT, "the device has failed: %s", s->player.why);
    return 0;
}

/* ---- marks ---- */

/* CTL_TYPED: values of that dtype lie there. */
static int serve_ctl_do_typed(struct ctl *c, struct err *e)
{
    if (c->q.c >= DT_COUNT || !context_holds(&c->s->context, c->q.a, c->q.b))
        return serve_ctl_no(e, "typed values do not lie within one allocation");
    context_typed(&c->s->context, c->q.a, c->q.b, (uint32_t)c->q.c);
    return 0;
}

/* CTL_PAUSE: requests of the client wait. */
static int serve_ctl_do_pause(struct ctl *c, struct err *e)
{
    (void)e;
    serve_settle(c->s);
    c->s->paused = true;
    return 0;
}

/* CTL_DRY: until the next recording. */
static int serve_ctl_do_dry(struct ctl *c, struct err *e)
{
    (void)e;
    serve_settle(c->s);
    c->s->dry = c->s->player.no_launches = c->q.a != 0;
    return 0;
}

/* CTL_CALL_BEGIN: a call of forward begins, with a larger number than the last. */
static int serve_ctl_do_call_begin(struct ctl *c, struct err *e)
{
    serve_settle(c->s);
    if (!c->q.a || c->q.a <= c->s->context.call)
        return serve_ctl_no(e, "calls are numbered from 1");
    if (!c->s->context.calls && player_sync(&c->s->player) == WIRE_OK)
        c->s->changed = c->s->ops->changed(c->s->b);
    context_call_begin(&c->s->context, (uint32_t)c->q.a, clock_now_ns());
    c->s->paused = false; /* what the client asked for meanwhile belongs to this call */
    play_queue_go(&c->s->queue);
    return 0;
}

/* CTL_CALL_END: waits for the call's work; its counts go back. */
static int serve_ctl_do_call_end(struct ctl *c, struct err *e)
{
    struct exec_server *s = c->s;
    struct client_context *l = &s->context;
    struct executor_call out = {0};

    (void)e;
    serve_settle(s);
    s->paused = true;
    context_call_end(l);
    play_queue_go(&s->queue);
    play_queue_drain(&s->queue);
    player_sync(&s->player);
    out.error = s->player.error;
    out.refused = l->refused;
    out.launches = l->call_launches, out.bytes_up = l->call_up, out.bytes_down = l->call_down;
    out.given = l->call_given;
    out.reads = l->call_reads;
    out.unanswered = s->unanswered;
    out.compared = l->call_compared;
    out.casts = l->casts;
    out.reinterpreted = l->reinterpreted;
    out.casts_changed = s->ops->changed(s->b) - s->changed;
    snprintf(out.why, sizeof out.why, "%s", l->why[0] ? l->why : s->player.why);
    memcpy(s->bulk, &out, sizeof out);
    return 0;
}

/* ---- the log ---- */

/* CTL_LOG: the log goes back in a memfd, the counts in the bulk area. */
static int serve_ctl_do_log(struct ctl *c, struct err *e)
{
    const struct exec_log *l = &c->s->context.log;
    int fd = memfd_create("log", MFD_CLOEXEC);

    serve_settle(c->s);
    for (size_t at = 0; fd >= 0 && at < l->n;) {
        ssize_t n = write(fd, l->p + at, l->n - at);

        if (n <= 0)
            return close(fd), err_sys(e, "cannot copy the log");
        at += (size_t)n;
    }
    if (fd < 0)
        return err_sys(e, "cannot copy the log");
    c->r.v[0] = l->n, c->r.v[1] = l->full;
    memcpy(c->s->bulk, &l->counts, sizeof l->counts);
    c->out[0] = fd, c->n_out = 1;
    return 0;
}

static int serve_ctl_do_adopt(struct ctl *c, struct err *e)
{
    return context_adopt(c->s, c->fds[0], c->q.a, e);
}

/* CTL_FINDINGS: the checker's findings, as text in the bulk area. */
static int serve_ctl_do_findings(struct ctl *c, struct err *e)
{
    char *text;
    size_t n;

    (void)e;
    if (!c->s->replay.on)
        serve_settle(c->s);
    text = c->s->ops->findings ? c->s->ops->findings(c->s->b) : NULL;
    n = text ? strlen(text) : 0;
    memcpy(c->s->bulk, text ? text : "", n = n < CTL_BULK ? n : CTL_BULK);
    c->r.v[0] = n;
    free(text);
    return 0;
}

/* CTL_LACKS: bits of what the client wanted and is not there. */
static int serve_ctl_do_lacks(struct ctl *c, struct err *e)
{
    (void)e;
    if (!c->s->replay.on)
        serve_settle(c->s);
    c->r.v[0] = c->s->context.lacks;
    return 0;
}

static int serve_ctl_do_replay(struct ctl *c, struct err *e)
{
    serve_settle(c->s);
    ring_close(&c->s->ring);
    return replay_begin(c->s, &c->q, &c->r.v[0], e);
}

/* CTL_NEXT: replays up to the next stop. */
static int serve_ctl_do_next(struct ctl *c, struct err *e)
{
    if (!c->s->replay.on)
        return serve_ctl_no(e, "no replay has begun");
    replay_next(c->s, &c->r);
    return 0;
}

static int serve_ctl_do_time(struct ctl *c, struct err *e)
{
    return replay_time(c->s, c->q.a, &c->r, e);
}

static int (*const rows[CTL_OPS])(struct ctl *c, struct err *e) = {
    [CTL_HELLO] = serve_ctl_do_hello, [CTL_CONTEXT] = serve_ctl_do_context, [CTL_IMAGE] = serve_ctl_do_image,
    [CTL_ALLOC] = serve_ctl_do_alloc,
    [CTL_BIND] = serve_ctl_do_bind, [CTL_SHARE] = serve_ctl_do_share, [CTL_BOUND] = serve_ctl_do_bound,
    [CTL_PULL] = serve_ctl_do_pull,
    [CTL_TILE] = serve_ctl_do_tile, [CTL_RANDOM] = serve_ctl_do_random, [CTL_PEEK] = serve_ctl_do_peek,
    [CTL_TYPED] = serve_ctl_do_typed, [CTL_PAUSE] = serve_ctl_do_pause, [CTL_LACKS] = serve_ctl_do_lacks,
    [CTL_DRY] = serve_ctl_do_dry,
    [CTL_CALL_BEGIN] = serve_ctl_do_call_begin, [CTL_CALL_END] = serve_ctl_do_call_end, [CTL_LOG] = serve_ctl_do_log,
    [CTL_ADOPT] = serve_ctl_do_adopt,
    [CTL_FINDINGS] = serve_ctl_do_findings, [CTL_REPLAY] = serve_ctl_do_replay, [CTL_NEXT] = serve_ctl_do_next,
    [CTL_TIME] = serve_ctl_do_time,
};

bool serve_ctl(struct exec_server *s, int recv_flags)
{
    struct ctl c = {.s = s};
    struct err e = ERR_INIT;
    ssize_t n = fdpass_recv(s->ctl, &c.q, sizeof c.q, c.fds, recv_flags);
    bool own = false;

    if (n < 0)
        return true; /* nothing there */
    if (n != sizeof c.q || c.q.op >= CTL_OPS)
        return false;
    if (rows[c.q.op](&c, &e) < 0) {
        c.r.code = (int)e.kind;
        c.r.zero = (uint32_t)e.lack;
        snprintf(c.r.why, sizeof c.r.why, "%s", e.msg);
        c.n_out = 0;
    }
    own = c.q.op == CTL_LOG && c.n_out;
    c.r.error = s->player.error;
    if (!c.r.code && s->player.error)
        snprintf(c.r.why, sizeof c.r.why, "%s", s->player.why);
    n = fdpass_send(s->ctl, &c.r, sizeof c.r, c.out, c.n_out);
    if (own)
        close(c.out[0]);
    fdpass_close(c.fds);
    return n == 0;
}
