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

#define CONNECTIONS 64

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

static void route_named(struct http_call *c, void *ctx)
{
    bool whole = !strcmp(http_part(c), "org/tiny");

    http_refuse(c, whole ? 418 : 404, "named", "named");
}

static const char *who(const char *token, void *ctx)
{
    return token && !strcmp(token, "a") ? "alice" : token && !strcmp(token, "b") ? "bob" : NULL;
}

static const struct http_route routes[] = {
    {"GET", "/park", route_park, false}, {"POST", "/park", route_park, false}, {"POST", "/size", route_size, false},
    {"POST", "/open", route_size, true}, {"GET", "/named/{id+}", route_named, true}, {0}};

static int start(void **state)
{
    struct http_config c = {.address = "127.0.0.1", .threads = 2, .body_max = 1000, .bodies_max = 2000,
                            .owner_bodies = 1500, .idle_s = 20, .head_s = 3.0, .owner_calls = 2,
                            .connections = CONNECTIONS, .routes = routes, .who = who};
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
    char *text = xasprintf("GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n", path, owner);
    say(fd, text);
    free(text);
    return hear(fd, 0.5);
}

/* A call counts until the server has closed its books, which is after the answer and before the connection's end. */
static void leave(int fd)
{
    shutdown(fd, SHUT_WR);
    while (hear(fd, 5) > 0)
        ;
    close(fd);
}

/* All of a body of n bytes but its last 'less' ones. */
static void begin_body(int fd, const char *owner, const char *path, int n, int less)
{
    char *text = xasprintf("POST %s HTTP/1.1\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%0*d", path,
                           owner, n, n - less, 0);
    say(fd, text);
    free(text);
}

/* Until all calls that were parked have ended: the server looks each second. */
static void settle(void)
{
    for (int i = 0; i < 100 && atomic_load(&gone) < atomic_load(&parked); i++)
        usleep(100000);
    assert_int_equal(atomic_load(&gone), atomic_load(&parked));
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
    assert_true(now_s() - began < 6);
    close(fd);
}

static void test_an_idle_connection_that_was_answered_is_closed_too(void **state)
{
    int fd = dial();

    begin_body(fd, "a", "/size", 9, 0);
    assert_int_equal(hear(fd, 2), 200);
    assert_int_equal(hear(fd, 1), -1);
    assert_int_equal(hear(fd, 6), 0);
    close(fd);
}

static void test_a_call_ends_when_its_client_leaves(void **state)
{
    int fd = dial(), before = atomic_load(&gone);

    assert_int_equal(ask(fd, "a", "/park"), -1);
    sleep(4); /* longer than headers may take: a parked call stays */
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
    settle();
}

static int post(const char *owner, const char *path, int n)
{
    int fd = dial(), status;

    begin_body(fd, owner, path, n, 0);
    status = hear(fd, 2);
    leave(fd);
    return status;
}

static void test_bodies_of_one_owner_have_a_limit(void **state)
{
    int one = dial();

    begin_body(one, "a", "/size", 900, 1); /* it does not end yet */
    usleep(300000);
    assert_int_equal(post("a", "/size", 900), 503);
    assert_int_equal(post("b", "/size", 900), 200); /* others have their own share */
    say(one, "x");
    assert_int_equal(hear(one, 3), 200);
    assert_int_equal(post("a", "/size", 900), 200); /* what has ended takes nothing */
    leave(one);
}

static void test_bodies_of_all_owners_have_a_limit(void **state)
{
    int one = dial(), two = dial();

    begin_body(one, "a", "/size", 900, 1);
    begin_body(two, "b", "/size", 900, 1);
    usleep(300000);
    assert_int_equal(post("a", "/size", 400), 503);
    say(one, "x");
    assert_int_equal(hear(one, 3), 200);
    assert_int_equal(post("a", "/size", 400), 200);
    leave(one);
    close(two);
}

static void test_a_parked_call_keeps_no_body(void **state)
{
    int one = dial(), two = dial();

    begin_body(one, "a", "/park", 900, 0);
    assert_int_equal(hear(one, 0.5), -1);
    begin_body(two, "a", "/park", 900, 0); /* both at once are more than owner_bodies */
    assert_int_equal(hear(two, 0.5), -1);
    assert_int_equal(post("b", "/size", 900), 200);
    close(one);
    close(two);
    settle();
}

static void test_who_is_nobody_sends_nothing(void **state)
{
    assert_int_equal(post("none", "/open", 900), 413);
    assert_int_equal(post("none", "/open", 0), 200);
}

static int ask_from(const char *origin)
{
    int fd = dial(), status;
    char *text = xasprintf("POST /open HTTP/1.1\r\nHost: here:80\r\n%sContent-Length: 0\r\n\r\n", origin);

    say(fd, text);
    status = hear(fd, 3);
    free(text);
    close(fd);
    return status;
}

/* A page that somebody visits must not ask in the name of the machine it is shown on. */
static void test_pages_of_other_sites_are_refused(void **state)
{
    assert_int_equal(ask_from(""), 200);
    assert_int_equal(ask_from("Origin: http://here:80\r\n"), 200);
    assert_int_equal(ask_from("Origin: http://evil.example\r\n"), 403);
    assert_int_equal(ask_from("Origin: null\r\n"), 403);
    assert_int_equal(ask_from("Origin: http://here:80\r\nAuthorization: Bearer a\r\n"), 200);
}

static int ask_host(const char *host)
{
    int fd = dial(), status;
    char *text = xasprintf("POST /open HTTP/1.1\r\nHost: %s\r\nOrigin: http://%s\r\nContent-Length: 0\r\n\r\n", host,
                           host);

    say(fd, text);
    status = hear(fd, 3);
    free(text);
    close(fd);
    return status;
}

/* Such a page has made its own name lead to this machine, so that its Origin and the Host are one. */
static void test_a_name_of_somebody_is_no_host(void **state)
{
    static const char *const good[] = {"127.0.0.1", "127.0.0.1:80", "[::1]:80", "localhost:80", "Judge.LAN:80", "b"};
    static const char *const bad[] = {"evil.example", "judge.lan.evil.example", "127.0.0.1.evil.example", "judge"};
    struct http_config c = {.address = "127.0.0.1", .threads = 1, .body_max = 1000, .bodies_max = 2000, .idle_s = 20,
                            .head_s = 3.0, .connections = 4, .routes = routes, .who = who, .hosts = "judge.lan,b"};
    struct http *any = server;
    struct err e = ERR_INIT;

    assert_int_equal(http_start(&c, &server, &e), 0);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(ask_host(good[i]), 200);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(ask_host(bad[i]), 403);
    http_stop(server);
    server = any;
}

static void test_a_name_may_have_slashes(void **state)
{
    int fd = dial();

    assert_int_equal(ask(fd, "a", "/named/org/tiny"), 418);
    assert_int_equal(ask(fd, "a", "/named/tiny"), 404);
    close(fd);
}

/* More silent connections than there may be: the oldest of them make room. Whoever is answered, or was, stays. */
static void test_silent_connections_make_room(void **state)
{
    int parked_call = dial(), rests = dial(), silent[2 * CONNECTIONS], fd;

    begin_body(rests, "a", "/size", 9, 0);
    assert_int_equal(hear(rests, 2), 200);
    assert_int_equal(ask(parked_call, "a", "/park"), -1);
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
        silent[i] = dial();
        if (i % 2)
            say(silent[i], "GET /x HTTP/1.1\r\nX: ");
    }
    fd = dial();
    assert_int_equal(ask(fd, "b", "/nothing"), 404);
    assert_int_equal(hear(silent[0], 0.5), 0);
    assert_int_equal(hear(parked_call, 0), -1);
    begin_body(rests, "a", "/size", 9, 0);
    assert_int_equal(hear(rests, 2), 200);
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        close(silent[i]);
    close(fd);
    close(rests);
    close(parked_call);
    settle();
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
        char *text = xasprintf("POST /size HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer a\r\n%s\r\n"
                               "0\r\n\r\nGET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
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
        cmocka_unit_test(test_bodies_of_one_owner_have_a_limit),
        cmocka_unit_test(test_bodies_of_all_owners_have_a_limit),
        cmocka_unit_test(test_a_parked_call_keeps_no_body),
        cmocka_unit_test(test_who_is_nobody_sends_nothing),
        cmocka_unit_test(test_pages_of_other_sites_are_refused),
        cmocka_unit_test(test_a_name_of_somebody_is_no_host),
        cmocka_unit_test(test_a_name_may_have_slashes),
        cmocka_unit_test(test_silent_connections_make_room),
        cmocka_unit_test(test_an_ambiguous_length_is_refused),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
