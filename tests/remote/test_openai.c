/* test_openai.c - a server that fails in the middle of its answer, tears it, or sends what is no JSON: what comes
 * back is the answer of a later try, or an error, and never a part. The server is a thread here that plays a
 * script. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "remote/many.h"
#include "remote/openai.h"

#define SAYS(text) "data: {\"choices\":[{\"delta\":{\"content\":\"" text "\"}}]}\n\n"
#define ENDS(why) "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"" why "\"}]}\n\n"
#define DONE "data: [DONE]\n\n"
#define WHOLE SAYS("whole") ENDS("stop") DONE

/* One string an exchange; the last is played for ever. */
static const char *const *script;
static int played, listener;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void read_request(int fd)
{
    char text[65536];
    size_t n = 0, body = 0;
    char *end = NULL;
    ssize_t k;

    while ((!end || n < body) && (k = read(fd, text + n, sizeof text - 1 - n)) > 0) {
        text[n += (size_t)k] = 0;
        if (!end && (end = strstr(text, "\r\n\r\n"))) {
            char *length = strcasestr(text, "content-length:");
            body = (size_t)(end + 4 - text) + (length ? strtoul(length + 15, NULL, 10) : 0);
        }
    }
}

static void answer(int fd, const char *text)
{
    bool stream = *text != '{';
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    buf_addf(&b, "HTTP/1.1 %s\r\nContent-Type: %s\r\nConnection: close\r\n\r\n%s",
             strstr(text, "BadRequestError")       ? "400 Bad Request"
             : strstr(text, "AuthenticationError") ? "401 Unauthorized"
                                                   : "200 OK",
             stream ? "text/event-stream" : "application/json", text);
    for (size_t at = 0; at < b.n;) {
        ssize_t k = send(fd, b.p + at, b.n - at, MSG_NOSIGNAL);
        if (k <= 0)
            break;
        at += (size_t)k;
    }
    buf_free(&b);
}

static void *serve(void *arg)
{
    int fd;

    (void)arg;
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        const char *text;

        read_request(fd);
        pthread_mutex_lock(&lock);
        text = script[played];
        played += script[played + 1] != NULL;
        pthread_mutex_unlock(&lock);
        answer(fd, text);
        shutdown(fd, SHUT_WR);
        close(fd);
    }
    return NULL;
}

static char *start(pthread_t *thread)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;

    listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &n), 0);
    assert_int_equal(pthread_create(thread, NULL, serve, NULL), 0);
    return xasprintf("http://127.0.0.1:%d/v1", ntohs(at.sin_port));
}

static char *url;

static int chat_for(const char *const *s, double retry_s, struct openai_reply *r, struct err *e)
{
    json_t *messages = json_pack("[{s:s,s:s}]", "role", "user", "content", "hello");
    struct openai_config c = {.url = url, .model = "m", .retry_s = retry_s, .pause_s = 0.01};
    struct openai_ask ask = {.messages = messages, .seed = -1};
    struct openai *a = NULL;
    int rc;

    script = s, played = 0;
    assert_int_equal(openai_open(&c, &a, e), 0);
    rc = openai_chat(a, &ask, r, e);
    openai_close(a);
    json_decref(messages);
    return rc;
}

/* The first exchange fails in some way, the second is whole. */
static void again(const char *first, const char *want)
{
    const char *const s[] = {first, WHOLE, NULL};
    struct openai_reply r = {0};
    struct err e = ERR_INIT;

    if (chat_for(s, 30, &r, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(r.text, want);
    assert_int_equal(played, 1);
    openai_reply_free(&r);
}

static void errors_in_a_stream_are_asked_again(void **state)
{
    (void)state;
    again("data: {\"error\":{\"message\":\"CUDA out of memory\"}}\n\n" DONE, "whole");
}

static void aborted_and_empty_answers_are_asked_again(void **state)
{
    (void)state;
    again(SAYS("ha") ENDS("abort") DONE, "whole");
    again(DONE, "whole");
}

/* Some proxies fail in an event, some engines in an object, and some in a reason of their own. */
static void failures_of_many_kinds_are_asked_again(void **state)
{
    (void)state;
    again(SAYS("half") "event: error\ndata: {\"message\":\"upstream died\",\"code\":500}\n\n" DONE, "whole");
    again(SAYS("half") "event: error\r\ndata: upstream died\r\n\r\n" DONE, "whole");
    again(SAYS("half") "data: {\"object\":\"error\",\"message\":\"oom\",\"code\":500}\n\n" ENDS("stop") DONE, "whole");
    again(SAYS("half") ENDS("insufficient_system_resource") DONE, "whole");
    again(SAYS("half") ENDS("a reason of tomorrow") DONE, "whole");
    again(SAYS("half") "data: {\"choices\":[{\"delta\":{},\"finish_reason\":7}]}\n\n" DONE, "whole");
    again(SAYS("half") DONE, "whole");
    again("data: {\"choices\":[{}]}\n\n" DONE, "whole");
    again("data: {\"choices\":[{\"delta\":{\"content\":7}}]}\n\n" ENDS("stop") DONE, "whole");
    again("{\"object\":\"error\",\"message\":\"oom\",\"code\":500}", "whole");
    again("{\"detail\":\"overloaded\"}", "whole");
    again("{\"choices\":[{}]}", "whole");
    again("{\"choices\":[{\"message\":{\"content\":null},\"finish_reason\":null}]}", "whole");
    again("{\"choices\":[{\"message\":{\"content\":null},\"finish_reason\":\"stop\"}]}", "whole");
    again("{\"choices\":[{\"message\":{\"content\":\"half\"}}]}", "whole");
    again("{\"choices\":[{\"message\":{\"content\":\"half\"},\"finish_reason\":\"abort\"}]}", "whole");
    again("{\"choices\":[{\"message\":{\"content\":{}},\"finish_reason\":\"stop\"}]}", "whole");
}

static void torn_streams_are_asked_again(void **state)
{
    (void)state;
    again(SAYS("half"), "whole");
    again(SAYS("AAA") "data: {\"choices\":[{\"delta\":{\"con\n\n" SAYS("CCC") ENDS("stop") DONE, "whole");
}

static void whole_answers_with_an_error_are_asked_again(void **state)
{
    (void)state;
    again("{\"error\":{\"message\":\"engine died\"},\"choices\":[]}", "whole");
}

/* What is odd and whole is taken as it is: in one exchange. */
static void once(const char *text, const char *want)
{
    const char *const s[] = {text, "data: unused\n\n", NULL};
    struct openai_reply r = {0};
    struct err e = ERR_INIT;

    if (chat_for(s, 30, &r, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(r.text, want);
    openai_reply_free(&r);
}

static void odd_answers_are_whole(void **state)
{
    (void)state;
    once(SAYS("AAA") SAYS("B\\u0000B") SAYS("CCC") ENDS("stop") DONE, "AAAB\xEF\xBF\xBD" "BCCC");
    once(SAYS("a\\\\u0000") ENDS("stop") DONE, "a\\u0000");
    once(SAYS("b\xFF") ENDS("stop") DONE, "b\xEF\xBF\xBD");
    once(SAYS("no line end") ENDS("stop") "data: [DONE]", "no line end");
    once(ENDS("stop") DONE, "");
    once("{\"choices\":[{\"message\":{\"content\":\"one\"},\"finish_reason\":\"stop\"}]}", "one");
    once("{\"error\":null,\"choices\":[{\"message\":{\"content\":\"one\"},\"finish_reason\":\"stop\"}]}", "one");
}

#define THOUGHT "{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"hm\"}]}"
#define PART(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define PARTS "[" THOUGHT "," PART("on") ",{\"type\":\"reference\",\"ids\":[1]}," PART("e") "]"

static void contents_in_parts_are_joined(void **state)
{
    (void)state;
    once("data: {\"choices\":[{\"delta\":{\"content\":" PARTS "}}]}\n\n" ENDS("stop") DONE,
         "<think>\nhm\n</think>\n\none");
    once("{\"choices\":[{\"message\":{\"content\":" PARTS "},\"finish_reason\":\"stop\"}]}",
         "<think>\nhm\n</think>\n\none");
}

/* The words of servers for an end; "" stands in chunks of some that have not ended. */
static void ends_have_many_names(void **state)
{
    (void)state;
    once(SAYS("a") ENDS("") SAYS("b") ENDS("eos_token") DONE, "ab");
    once(SAYS("a") ENDS("end_turn"), "a");
    once("event: message\n" SAYS("a") ": ping\n\n" ENDS("STOP"), "a");
    once("{\"choices\":[{\"message\":{\"content\":\"\"},\"finish_reason\":\"stop\"}]}", "");
    once("{\"choices\":[{\"message\":{\"content\":null},\"finish_reason\":\"length\"}]}", "");
    once("{\"choices\":[{\"message\":{\"content\":null,\"refusal\":\"no\"},\"finish_reason\":\"stop\"}]}", "no");
}

static int draw_for(const char *const *s, double retry_s, struct openai_reply *r, struct err *e)
{
    struct openai_config c = {.url = url, .model = "m", .retry_s = retry_s, .pause_s = 0.01};
    struct openai_ask ask = {.prompt = (const int32_t[]){1, 2}, .n_prompt = 2, .n = 2, .n_vocab = 100, .max_tokens = 3};
    struct openai *a = NULL;
    int rc;

    script = s, played = 0;
    assert_int_equal(openai_open(&c, &a, e), 0);
    rc = openai_chat(a, &ask, r, e);
    openai_close(a);
    return rc;
}

#define DRAWN(i, ids, logp, why)                                                                            \
    "{\"index\":" i ",\"token_ids\":[" ids "],\"logprobs\":{\"token_logprobs\":[" logp "]},\"finish_reason\":" why "}"
#define FIRST DRAWN("0", "5,99", "-1,-0.5", "\"stop\"")
#define SECOND DRAWN("1", "7,8,9", "0,0,-2", "\"length\"")
#define CHOICES(list) "{\"choices\":[" list "]}"

/* What no sampler draws is the server's fault, and named: of one answer it is asked again, of three it ends. */
static void drawn_faultily(const char *second, const char *want)
{
    char *bad = xasprintf(CHOICES(FIRST "%s%s"), *second ? "," : "", second);
    const char *const mends[] = {bad, CHOICES(SECOND "," FIRST), NULL}, *const stays[] = {bad, NULL};
    struct openai_reply r = {0};
    struct err e = ERR_INIT;

    if (draw_for(mends, 30, &r, &e) < 0)
        fail_msg("%s: %s", second, e.msg);
    assert_int_equal(played, 1);
    assert_int_equal(r.n_samples, 2);
    assert_int_equal(r.samples[0].ids[1], 99);
    assert_true(r.samples[0].logp[1] == -0.5f && !r.samples[0].cut && r.samples[1].cut);
    openai_reply_free(&r);
    assert_int_equal(draw_for(stays, 0.01, &r, &e), -1);
    assert_int_equal(e.kind, ERR_ENV);
    if (!strstr(e.msg, want))
        fail_msg("'%s' does not say '%s'", e.msg, want);
    free(bad);
}

static void samples_that_nobody_draws_are_asked_again(void **state)
{
    (void)state;
    drawn_faultily(DRAWN("1", "5,1000000000,7", "-1,-1,-1", "\"stop\""), "id 1000000000, is outside the vocabulary");
    drawn_faultily(DRAWN("1", "100", "-1", "\"stop\""), "id 100, is outside the vocabulary");
    drawn_faultily(DRAWN("1", "4294967301", "-1", "\"stop\""), "is outside the vocabulary");
    drawn_faultily(DRAWN("1", "5,-7", "-1,-1", "\"stop\""), "id -7, is outside the vocabulary");
    drawn_faultily(DRAWN("1", "\"a\"", "-1", "\"stop\""), "is no number");
    drawn_faultily(DRAWN("1", "5", "null", "\"stop\""), "has no log-prob");
    drawn_faultily(DRAWN("1", "5", "2.5", "\"stop\""), "log-prob above 0");
    drawn_faultily(DRAWN("1", "5,6", "-1", "\"stop\""), "token_logprobs");
    drawn_faultily(DRAWN("1", "", "", "\"stop\""), "token_ids");
    drawn_faultily(DRAWN("1", "1,2,3,4", "-1,-1,-1,-1", "\"stop\""), "more tokens");
    drawn_faultily(DRAWN("1", "5", "-1", "null"), "no finish_reason");
    drawn_faultily(DRAWN("1", "5", "-1", "\"abort\""), "gave its answer up");
    drawn_faultily("", "1 samples of 2");
    drawn_faultily(FIRST, "1 samples of 2");
}

#define REFUSED "{\"error\":{\"type\":\"BadRequestError\",\"message\":\"no model\"}}"
#define NOBODY "{\"error\":{\"type\":\"AuthenticationError\",\"message\":\"who are you\"}}"

/* A dialogue that does not fit has no answer, which is no error: the others go on. Who may not ask has an error. */
static void a_dialogue_without_room_has_no_answer(void **state)
{
    static const char *const full[] = {"{\"object\":\"error\",\"type\":\"BadRequestError\",\"message\":\"This model's "
                                       "maximum context length is 4096 tokens.\"}", NULL};
    static const char *const refused[] = {REFUSED, NULL}, *const nobody[] = {NOBODY, NULL};
    struct openai_reply r = {0};
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(chat_for(full, 30, &r, &e), 0);
    assert_true(r.no_room);
    openai_reply_free(&r);
    assert_int_equal(chat_for(refused, 30, &r, &e), 0);
    assert_string_equal(r.refused, "400: no model");
    openai_reply_free(&r);
    assert_int_equal(chat_for(nobody, 30, &r, &e), -1);
    assert_int_equal(e.kind, ERR_INPUT);
}

struct heard {
    int n, refused, texts;
};

static int hear(int i, const struct openai_reply *r, void *ctx, struct err *e)
{
    struct heard *h = ctx;

    (void)i, (void)e;
    h->n++;
    h->refused += r->refused != NULL;
    h->texts += *r->text != 0;
    return 0;
}

/* Three dialogues, one at a time. */
static int ask_three(const char *const *s, struct heard *h, struct err *e)
{
    json_t *messages = json_pack("[{s:s,s:s}]", "role", "user", "content", "hello");
    struct openai_config c = {.url = url, .model = "m", .retry_s = 1, .pause_s = 0.01};
    struct openai_ask ask = {.messages = messages, .seed = -1}, asks[] = {ask, ask, ask};
    struct openai *a = NULL;
    int rc;

    script = s, played = 0;
    *h = (struct heard){0};
    assert_int_equal(openai_open(&c, &a, e), 0);
    rc = openai_many(a, asks, 3, 1, hear, h, e);
    openai_close(a);
    json_decref(messages);
    return rc;
}

/* A server that refuses one dialogue answers the others; one that refuses all, or who asks, ends the call. */
static void a_refused_dialogue_ends_no_other(void **state)
{
    static const char *const one[] = {REFUSED, WHOLE, WHOLE, NULL}, *const all[] = {REFUSED, REFUSED, REFUSED, NULL};
    static const char *const who[] = {WHOLE, NOBODY, WHOLE, NULL};
    struct err e = ERR_INIT;
    struct heard h;

    (void)state;
    assert_int_equal(ask_three(one, &h, &e), 0);
    assert_true(h.n == 3 && h.refused == 1 && h.texts == 2);
    assert_int_equal(ask_three(all, &h, &e), -1);
    assert_non_null(strstr(e.msg, "the server refuses each dialogue, the last with 400: no model"));
    assert_int_equal(h.n, 0);
    assert_int_equal(ask_three(who, &h, &e), -1);
    assert_non_null(strstr(e.msg, "401"));
    assert_true(h.n == 1 && h.texts == 1);
}

/* An answer that a filter ended, or a call of tools that nobody offered, is asked for again, and at last refused. */
static void what_the_model_did_not_end_is_no_answer(void **state)
{
    static const char *const ends[] = {"content_filter", "tool_calls", "function_call"};

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char *first = xasprintf(SAYS("let me look") ENDS("%s") DONE, ends[i]);
        const char *const stays[] = {first, NULL};
        struct openai_reply r = {0};
        struct err e = ERR_INIT;

        again(first, "whole");
        assert_int_equal(chat_for(stays, 30, &r, &e), 0);
        assert_string_equal(r.text, "");
        assert_non_null(strstr(r.refused, ends[i]));
        openai_reply_free(&r);
        free(first);
    }
}

/* What is not the one answer that was asked for is not taken for it. */
static void other_answers_are_no_part_of_it(void **state)
{
    (void)state;
    once("data: {\"choices\":[{\"delta\":{\"role\":\"user\",\"content\":\"hello\"}}]}\n\n"
         "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"a\"}}]}\n\n" ENDS("stop") DONE, "a");
    once("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n"
         "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"b\"}}]}\n\n" ENDS("stop") DONE, "a");
    again(SAYS("a") ENDS("stop") SAYS("b") ENDS("stop") DONE, "whole");
    once(SAYS("a") ENDS("stop") SAYS("") DONE, "a");
    again("data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
          "data: {\"model\":\"other\",\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n" ENDS("stop") DONE, "whole");
}

/* A server that sends no JSON each time is not asked for ten minutes. */
static void what_is_never_json_is_an_error_soon(void **state)
{
    static const char *const s[] = {"no JSON", "no JSON", "no JSON", "no JSON", "no JSON", NULL};
    struct openai_reply r = {0};
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(chat_for(s, 600, &r, &e), -1);
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.msg, "no JSON"));
    assert_int_equal(played, 3);
}

static void patience_ends(void **state)
{
    static const char *const s[] = {"data: {\"error\":{\"message\":\"still out of memory\"}}\n\n" DONE, NULL};
    struct openai_reply r = {0};
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(chat_for(s, 0.1, &r, &e), -1);
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.msg, "still out of memory"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_in_a_stream_are_asked_again),
        cmocka_unit_test(aborted_and_empty_answers_are_asked_again),
        cmocka_unit_test(failures_of_many_kinds_are_asked_again),
        cmocka_unit_test(torn_streams_are_asked_again),
        cmocka_unit_test(whole_answers_with_an_error_are_asked_again),
        cmocka_unit_test(odd_answers_are_whole),
        cmocka_unit_test(contents_in_parts_are_joined),
        cmocka_unit_test(ends_have_many_names),
        cmocka_unit_test(samples_that_nobody_draws_are_asked_again),
        cmocka_unit_test(a_dialogue_without_room_has_no_answer),
        cmocka_unit_test(a_refused_dialogue_ends_no_other),
        cmocka_unit_test(what_the_model_did_not_end_is_no_answer),
        cmocka_unit_test(other_answers_are_no_part_of_it),
        cmocka_unit_test(what_is_never_json_is_an_error_soon),
        cmocka_unit_test(patience_ends),
    };
    pthread_t thread;
    int rc;

    log_set_level(LOG_ERROR);
    url = start(&thread);
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    shutdown(listener, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(listener);
    free(url);
    return rc;
}
