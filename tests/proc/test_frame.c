/* test_frame.c - frames: round trips, caps, deadlines, broken peers, and the Python end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "proc/frame.h"

struct sender {
    int fd;
    const json_t *head;
    const void *blob;
    size_t n;
    int rc;
};

static void *send_thread(void *arg)
{
    struct sender *s = arg;

    s->rc = frame_send(s->fd, s->head, s->blob, s->n, now_s() + 10, NULL, NULL);
    return NULL;
}

static void round_trip(size_t n_blob)
{
    int sv[2];
    pthread_t t;
    unsigned char *blob = xmalloc(n_blob + 1);
    json_t *head = json_pack("{s:s,s:[i,i]}", "op", "run", "shape", 3, 4);
    struct sender s = {.head = head, .blob = blob, .n = n_blob, .rc = -1};
    struct frame f;
    struct err e = ERR_INIT;

    for (size_t i = 0; i < n_blob; i++)
        blob[i] = (unsigned char)(i * 31 + (i >> 8));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
    s.fd = sv[0];
    pthread_create(&t, NULL, send_thread, &s);
    assert_int_equal(frame_recv(sv[1], 0, 0, now_s() + 10, &f, NULL, &e), 0);
    pthread_join(t, NULL);
    assert_int_equal(s.rc, 0);
    assert_true(json_equal(f.head, head));
    assert_int_equal(f.n_blob, n_blob);
    assert_memory_equal(f.blob, blob, n_blob);
    frame_free(&f);
    json_decref(head);
    free(blob);
    close(sv[0]);
    close(sv[1]);
}

static void test_round_trips(void **state)
{
    (void)state;
    round_trip(0);
    round_trip(1);
    round_trip(1 << 20);
    round_trip((65u << 20) + 7); /* past the first reservation */
}

/* Writes raw bytes, closes or not, and reports what frame_recv made of them. */
static enum frame_fault feed(const void *bytes, size_t n, int close_after)
{
    int sv[2];
    struct frame f;
    enum frame_fault fault = FRAME_OK;
    struct err e = ERR_INIT;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
    if (n)
        assert_int_equal(write(sv[0], bytes, n), (ssize_t)n);
    if (close_after)
        close(sv[0]);
    if (frame_recv(sv[1], 1000, 1000, now_s() + 0.1, &f, &fault, &e) == 0)
        frame_free(&f);
    else
        assert_true(e.kind != ERR_NONE && e.msg[0]);
    if (!close_after)
        close(sv[0]);
    close(sv[1]);
    return fault;
}

static void test_bad_peers(void **state)
{
    char big_head[16] = {'M', 'C', 'F', '1', 0x7f, 0, 0, 0x7f},
        big_blob[16] = {'M', 'C', 'F', '1', 2, 0, 0, 0, 0, 0, 0, 0, 9};
    char array[18] = {'M', 'C', 'F', '1', 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '[', ']'};
    char object[18] = {'M', 'C', 'F', '1', 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    char twice[] = "MCF1\x0d\0\0\0\0\0\0\0\0\0\0\0{\"a\":1,\"a\":2}";
    char utf8[] = "MCF1\x09\0\0\0\0\0\0\0\0\0\0\0{\"a\":\"\xff\"}";
    (void)state;

    assert_int_equal(feed(object, sizeof object, 0), FRAME_OK);
    assert_int_equal(feed("", 0, 1), FRAME_CLOSED);
    assert_int_equal(feed("", 0, 0), FRAME_LATE);
    assert_int_equal(feed("MCF1", 4, 1), FRAME_CLOSED);
    assert_int_equal(feed(object, 17, 0), FRAME_LATE);
    assert_int_equal(feed("HTTP/1.1 200 OK\r\n", 17, 0), FRAME_BAD);
    assert_int_equal(feed(big_head, sizeof big_head, 0), FRAME_BAD);
    assert_int_equal(feed(big_blob, sizeof big_blob, 0), FRAME_BAD);
    assert_int_equal(feed(array, sizeof array, 0), FRAME_BAD);
    assert_int_equal(feed(twice, sizeof twice - 1, 0), FRAME_BAD);
    assert_int_equal(feed(utf8, sizeof utf8 - 1, 0), FRAME_BAD);
}

static void test_send_faults(void **state)
{
    int sv[2];
    enum frame_fault fault;
    struct err e = ERR_INIT;
    json_t *head = json_pack("{s:i}", "x", 1);
    char *blob = xcalloc(8 << 20, 1);
    (void)state;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
    assert_int_equal(frame_send(sv[0], head, blob, 8 << 20, now_s() + 0.1, &fault, &e), -1); /* nobody reads */
    assert_int_equal(fault, FRAME_LATE);
    close(sv[1]);
    assert_int_equal(frame_send(sv[0], head, blob, 100, now_s() + 0.1, &fault, &e), -1); /* and no SIGPIPE */
    assert_int_equal(fault, FRAME_CLOSED);
    close(sv[0]);
    json_decref(head);
    free(blob);
}

/* How many descriptors this process has open. */
static int open_fds(void)
{
    int n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void test_descriptors(void **state)
{
    json_t *head = json_pack("{s:s}", "op", "buffers");
    int sv[2], fds[FRAME_MAX_FDS], got[FRAME_MAX_FDS], before;
    union {
        char b[CMSG_SPACE(sizeof got)];
        struct cmsghdr align;
    } control;
    char first[16], byte;
    struct iovec v = {first, sizeof first};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control.b, .msg_controllen = sizeof control.b};
    struct err e = ERR_INIT;
    struct cmsghdr *c;
    struct frame f;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
    for (int i = 0; i < FRAME_MAX_FDS; i++) {
        fds[i] = memfd_create("test", 0);
        assert_int_equal(write(fds[i], &(char){(char)i}, 1), 1);
    }
    before = open_fds();
    assert_int_equal(frame_send_fds(sv[0], head, fds, FRAME_MAX_FDS, now_s() + 10, &e), 0);
    assert_int_equal(recvmsg(sv[1], &m, MSG_CMSG_CLOEXEC), sizeof first);
    assert_memory_equal(first, "MCF1", 4);
    c = CMSG_FIRSTHDR(&m);
    assert_true(c && c->cmsg_len == CMSG_LEN(sizeof got) && !(m.msg_flags & MSG_CTRUNC));
    memcpy(got, CMSG_DATA(c), sizeof got);
    for (int i = 0; i < FRAME_MAX_FDS; i++) {
        assert_int_equal(pread(got[i], &byte, 1, 0), 1);
        assert_int_equal(byte, i);
        close(got[i]);
    }
    close(sv[0]);
    close(sv[1]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0); /* a receiver that wants none: nothing stays open */
    assert_int_equal(frame_send_fds(sv[0], head, fds, 5, now_s() + 10, &e), 0);
    assert_int_equal(frame_recv(sv[1], 0, 0, now_s() + 10, &f, NULL, &e), 0);
    frame_free(&f);
    assert_int_equal(frame_send_fds(sv[0], head, fds, FRAME_MAX_FDS + 1, 0, &e), -1);
    assert_int_equal(open_fds(), before);
    for (int i = 0; i < FRAME_MAX_FDS; i++)
        close(fds[i]);
    close(sv[0]);
    close(sv[1]);
    json_decref(head);
}

static void *answer(void *ctx)
{
    struct err e = ERR_INIT;
    struct frame f;

    if (frame_recv(*(int *)ctx, 0, 0, now_s() + 10, &f, NULL, &e) < 0)
        return NULL;
    frame_send(*(int *)ctx, f.head, f.blob, f.n_blob, now_s() + 10, NULL, &e);
    frame_free(&f);
    return NULL;
}

static void test_rpc(void **state)
{
    struct err e = ERR_INIT;
    enum frame_fault fault;
    pthread_t peer;
    struct frame f;
    struct rpc r = {.blob = "abc", .n_blob = 3, .deadline = now_s() + 10};
    int sv[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
    pthread_create(&peer, NULL, answer, &sv[1]);
    r.fd = sv[0];
    assert_int_equal(rpc(&r, json_pack("{s:s}", "op", "echo"), &f, &fault, &e), 0);
    pthread_join(peer, NULL);
    assert_string_equal(json_str(f.head, "op", ""), "echo");
    assert_true(f.n_blob == 3 && !memcmp(f.blob, "abc", 3) && fault == FRAME_OK);
    frame_free(&f);
    r.deadline = now_s() + 0.1;
    assert_int_equal(rpc(&r, json_pack("{s:s}", "op", "echo"), &f, &fault, &e), -1);
    assert_int_equal(fault, FRAME_LATE);
    close(sv[1]);
    assert_int_equal(rpc(&r, json_pack("{s:s}", "op", "echo"), &f, &fault, &e), -1);
    assert_int_equal(fault, FRAME_CLOSED);
    assert_int_equal(rpc(&r, NULL, &f, &fault, &e), -1); /* no text, no request */
    close(sv[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_bad_peers),
        cmocka_unit_test(test_send_faults),
        cmocka_unit_test(test_rpc),
        cmocka_unit_test(test_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
