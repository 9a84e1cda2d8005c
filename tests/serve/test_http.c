/* test_http.c - what one client may take of the server: time for its headers, open calls, bytes; and that a call ends
 * when its client leaves. Limits are small here; serve.c has the real ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/mem.h"
#include "serve/http.h"

static struct http *server;
static atomic_int parked, gone;

static void on_gone(void *slot)
{
    atomic_fetch_add(&gone, 1);
}

/* Parks every call for good: nobody wakes it but the server. */
static void route_park(struct http_call *c, void *ctx)
{
    if (http_stopping(c)) {
        http_refuse(c, 503, "stopping", "stopped");
        return;
    }
    atomic_fetch_add(&parked, 1);
    http_park(c, &parked, on_gone);
}

static void route_size(struct http_call *c, void *ctx)
{
    size_t n;

    http_body(c, &n);
    http_reply_json(c, 200, json_pack("{s:I}", "n", (json_int_t)n));
}

static const char *who(const char *token, void *ctx)
{
    return token && !strcmp(token, "a") ? "alice" : token && !strcmp(token, "b") ? "bob" : NULL;
}

static const struct http_route routes[] = {
    {"GET", "/park", route_park, false}, {"POST", "/size", route_size, false}, {0}};

static int start(void **state)
{
    struct http_config c = {.address = "127.0.0.1", .threads = 2, .body_max = 1000, .bodies_max = 1500, .idle_s = 20,
                            .head_s = 1.0, .owner_calls = 2, .connections = 64, .routes = routes, .who = who};
    struct err e = ERR_INIT;

    return http_start(&c, &server, &e);
}

static int stop(void **state)
{
    http_stop(server);
    return 0;
}

static int dial(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)http_port(server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_return_code(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* The status of what comes within s seconds; 0: the connection was closed without; -1: nothing. */
static int hear(int fd, double s)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char text[4096];
    ssize_t n;

    if (poll(&p, 1, (int)(s * 1000)) == 0)
        return -1;
    n = recv(fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = 0;
    return atoi(text + strlen("HTTP/1.1 "));
}

static int ask(int fd, const char *owner, const char *path)
{
    char *text = xasprintf("GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", path, owner);
    say(fd, text);
    free(text);
    return hear(fd, 0.5);
}

static void test_headers_have_a_time_limit(void **state)
{
    int fd = dial(), status = -1;
    double began = now_s();

    say(fd, "GET /park HTTP/1.1\r\nX: ");
    while (status < 0 && now_s() < began + 8) { /* a byte now and then: never silent for long */
        send(fd, "y", 1, MSG_NOSIGNAL);
        status = hear(fd, 0.2);
    }
    assert_int_equal(status, 0);
    assert_true(now_s() - began < 4);
    close(fd);
}

static void test_an_idle_connection_that_was_answered_is_closed_too(void **state)
{
    int fd = dial();

    assert_int_equal(ask(fd, "a", "/nothing"), 404);
    assert_int_equal(hear(fd, 4), 0);
    close(fd);
}

static void test_a_call_ends_when_its_client_leaves(void **state)
{
    int fd = dial(), before = atomic_load(&gone);

    assert_int_equal(ask(fd, "a", "/park"), -1);
    sleep(2); /* longer than headers may take: a parked call stays */
    assert_int_equal(atomic_load(&gone), before);
    close(fd);
    for (int i = 0; i < 40 && atomic_load(&gone) == before; i++)
        usleep(100000);
    assert_int_equal(atomic_load(&gone), before + 1);
}

static void test_one_owner_cannot_have_all_calls(void **state)
{
    int fd[4], status[4];

    for (int i = 0; i < 4; i++) {
        fd[i] = dial();
        status[i] = ask(fd[i], "a", "/park");
    }
    assert_int_equal(status[1], -1);
    assert_int_equal(status[3], 429);
    for (int i = 0; i < 4; i++)
        close(fd[i]);
    fd[0] = dial();
    assert_int_equal(ask(fd[0], "b", "/park"), -1);
    close(fd[0]);
    sleep(2);
}

static void test_bodies_of_all_calls_have_a_limit(void **state)
{
    static const char head[] = "POST /size HTTP/1.1\r\nAuthorization: Bearer a\r\nContent-Length: 900\r\n\r\n";
    char body[901];
    int one = dial(), two = dial();

    memset(body, 'x', 900);
    body[900] = 0;
    say(one, head);
    body[899] = 0; /* the first never ends */
    say(one, body);
    body[899] = 'x';
    usleep(300000);
    say(two, head);
    say(two, body);
    assert_int_equal(hear(two, 3), 503);
    say(one, "x");
    assert_int_equal(hear(one, 3), 200);
    close(two);
    two = dial();
    say(two, head);
    say(two, body);
    assert_int_equal(hear(two, 3), 200); /* what has ended takes nothing */
    close(one);
    close(two);
}

/* Messages whose length a proxy may understand otherwise: refused, and what follows is not taken for a request. */
static void test_an_ambiguous_length_is_refused(void **state)
{
    static const char *const odd[] = {
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Content-Length: 4\r\nContent-Length: 4\r\n",          "Content-Length: +4\r\n",
        "Content-Length: 4,4\r\n",                             "Content-Length: 0x4\r\n",
        "Content-Length: -1\r\n",                              "Content-Length:\r\n",
        "Transfer-Encoding: xchunked\r\n",                     "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Content-Length : 4\r\n",                              "Transfer-Encoding\t: chunked\r\n",
    };

    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        int fd = dial(), status;
        char *text = xasprintf("POST /size HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\n%s\r\n"
                               "0\r\n\r\nGET /nothing HTTP/1.1\r\nHost: x\r\n\r\n",
                               odd[i]);
        say(fd, text);
        free(text);
        status = hear(fd, 3);
        if (status != 400 && status != 0)
            fail_msg("'%s' had the answer %d", odd[i], status);
        if (status == 400)
            assert_int_equal(hear(fd, 3), 0); /* closed: the second request had no answer */
        close(fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers_have_a_time_limit),
        cmocka_unit_test(test_an_idle_connection_that_was_answered_is_closed_too),
        cmocka_unit_test(test_a_call_ends_when_its_client_leaves),
        cmocka_unit_test(test_one_owner_cannot_have_all_calls),
        cmocka_unit_test(test_bodies_of_all_calls_have_a_limit),
        cmocka_unit_test(test_an_ambiguous_length_is_refused),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
