/* timing.c - see timing.h. */
#include "eval/perf/timing.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#define MESSAGE 24
#define SPIN_S 0.005 /* after that a wake-up's latency is small beside the call */

/* Seconds of a clock that no adjustment touches. */
static double timing_precise_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sets the fault (ret may be NULL) and its words. Always -1. */
static int timing_fail(enum frame_fault *ret, enum frame_fault fault, struct err *e, const char *what)
{
    if (ret)
        *ret = fault;
    return err_set(e, fault == FRAME_STOPPED ? ERR_STOP : ERR_ENV, "%s", what);
}

/* Reads one message, without sleeping at first: a sleeper's wake-up would be measured too. */
static int timing_read_message(int fd, unsigned char *to, double deadline, enum frame_fault *ret_fault, struct err *e)
{
    double start = timing_precise_s();
    struct pollfd p = {.fd = fd, .events = POLLIN};

    for (size_t got = 0; got < MESSAGE;) {
        ssize_t k = recv(fd, to + got, MESSAGE - got, MSG_DONTWAIT);

        if (k > 0) {
            got += (size_t)k;
            continue;
        }
        if (k == 0 || errno == ECONNRESET || errno == EPIPE)
            return timing_fail(ret_fault, FRAME_CLOSED, e, "the peer closed the connection");
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            return timing_fail(ret_fault, FRAME_BROKEN, e, strerror(errno));
        if (stop_requested())
            return timing_fail(ret_fault, FRAME_STOPPED, e, "stopped");
        if (now_s() > deadline)
            return timing_fail(ret_fault, FRAME_LATE, e, "the peer did not answer in time");
        if (timing_precise_s() - start > SPIN_S)
            poll(&p, 1, 20);
    }
    return 0;
}

static void timing_put_u32(unsigned char *p, uint32_t x)
{
    memcpy(p, &x, 4);
}

/* The other side has cleaned up after its last call and waits. Returns 1 when it says that cleaning up raised. */
static int timing_await_ready(int fd, uint32_t index, double deadline, enum frame_fault *ret_fault, struct err *e)
{
    unsigned char ready[MESSAGE];
    uint32_t of;

    if (timing_read_message(fd, ready, deadline, ret_fault, e) < 0)
        return -1;
    memcpy(&of, ready + 4, 4);
    if (!memcmp(ready, "MCTE", 4))
        return 1;
    if (memcmp(ready, "MCRD", 4) || of != index)
        return timing_fail(ret_fault, FRAME_BAD, e, "the peer does not speak our protocol");
    return 0;
}

/* One call: send the seed, wait until it is over. Returns 1 when the other side says that the call raised. */
static int timing_one_call(int fd, struct timed_call *c, uint32_t index, double deadline, enum frame_fault *ret_fault,
                           struct err *e)
{
    unsigned char go[MESSAGE], done[MESSAGE];
    uint32_t answered;
    double start;
    int rc = timing_await_ready(fd, index, deadline, ret_fault, e);

    if (rc)
        return rc;
    memcpy(go, "MCGO", 4);
    timing_put_u32(go + 4, (uint32_t)c->mode);
    memcpy(go + 8, &c->seed, 8);
    timing_put_u32(go + 16, 0);
    timing_put_u32(go + 20, index);
    start = timing_precise_s();
    if (send(fd, go, MESSAGE, MSG_NOSIGNAL) != MESSAGE)
        return timing_fail(ret_fault, errno == EPIPE || errno == ECONNRESET ? FRAME_CLOSED : FRAME_BROKEN, e,
                           "cannot start a call");
    if (timing_read_message(fd, done, deadline, ret_fault, e) < 0)
        return -1;
    c->span_ms = (timing_precise_s() - start) * 1e3;
    memcpy(&answered, done + 4, 4);
    memcpy(&c->event_ms, done + 16, 8);
    if (!memcmp(done, "MCTE", 4))
        return 1;
    if (memcmp(done, "MCTD", 4) || answered != index)
        return timing_fail(ret_fault, FRAME_BAD, e, "the peer does not speak our protocol");
    return 0;
}

/* Room for one more call; the caller counts n. */
static struct timed_call *timing_append(struct timed_calls *calls)
{
    if (calls->n == calls->capacity) {
        calls->capacity = calls->capacity ? calls->capacity * 2 : 64;
        calls->v = xrealloc(calls->v, (size_t)calls->capacity * sizeof *calls->v);
    }
    return &calls->v[calls->n];
}

int timing_block(int fd, const struct timing_block *b, double deadline, struct timed_calls *calls, struct frame *ret,
                 enum frame_fault *ret_fault, struct err *e)
{
    json_t *req = json_pack("{s:s,s:i,s:s,s:i}", "op", "time", "n", b->n, "which", b->which, "pad_us", b->pad_us);
    int rc = frame_send(fd, req, NULL, 0, deadline, ret_fault, e);

    json_decref(req);
    for (int i = 0; i < b->n && rc == 0; i++) {
        struct timed_call *c = timing_append(calls);

        *c = (struct timed_call){.mode = b->mode, .round = b->round};
        if (getrandom(&c->seed, sizeof c->seed, 0) != sizeof c->seed)
            rc = timing_fail(ret_fault, FRAME_BROKEN, e, "no random numbers from the system");
        else
            rc = timing_one_call(fd, c, (uint32_t)i, deadline, ret_fault, e);
        calls->n += rc == 0;
    }
    if (rc < 0 || frame_recv(fd, (size_t)1 << 20, (size_t)1 << 20, deadline, ret, ret_fault, e) < 0)
        return -1;
    if (rc == 0 || strcmp(json_str(ret->head, "op", ""), "timed"))
        return 0;
    frame_free(ret); /* it ended the block, and says that it did not */
    return timing_fail(ret_fault, FRAME_BAD, e, "the peer does not speak our protocol");
}

void timed_calls_free(struct timed_calls *c)
{
    free(c->v);
    *c = (struct timed_calls){0};
}
