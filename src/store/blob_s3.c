/* blob_s3.c - see blob_s3.h. libcurl signs; it is loaded when a bucket is named. */
#include "store/blob_s3.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/dl.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"

#define TRIES 5
#define CONNECT_S 10L
#define REQUEST_S 120L

#define CURL_CALLS(X) \
    X(curl_global_init) X(curl_easy_init) \
    X(curl_easy_cleanup) X(curl_easy_perform) X(curl_easy_strerror) X(curl_slist_append) X(curl_slist_free_all)
#define CURL_MEMBER(name) __typeof__(&name) name;
static struct {
    CURL_CALLS(CURL_MEMBER)
    CURLcode (*setopt)(CURL *h, CURLoption o, ...);
    CURLcode (*getinfo)(CURL *h, CURLINFO i, ...);
} lib;

#define CURL_ROW(name) {#name, (void **)&lib.name},
static const struct dl_name lib_names[] = {CURL_CALLS(CURL_ROW){"curl_easy_setopt", (void **)&lib.setopt},
                                           {"curl_easy_getinfo", (void **)&lib.getinfo},
                                           {NULL, NULL}};

struct blob_s3_exchange {
    const char *place, *key;
    const char *put; /* NULL: get */
    size_t n, sent;
    struct buf *out;
};

static const char *blob_s3_setting(const char *name, const char *otherwise)
{
    const char *v = getenv(name);

    return v && *v ? v : otherwise;
}

static pthread_once_t lib_once = PTHREAD_ONCE_INIT;

static void blob_s3_lib_start(void)
{
    lib.curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* ERR_INPUT for a place without bucket; ERR_ENV without credentials or libcurl, which is loaded here. */
int blob_s3_check(const char *place, struct err *e)
{
    if (strlen(place) < 6 || place[5] == '/')
        return err_set(e, ERR_INPUT, "'%s' names no bucket; give s3://BUCKET/PREFIX", place);
    if (!blob_s3_setting("AWS_ACCESS_KEY_ID", NULL) || !blob_s3_setting("AWS_SECRET_ACCESS_KEY", NULL))
        return err_set(e, ERR_ENV, "'%s' needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment",
                       place);
    if (dl_load("libcurl.so.4", "libcurl4", lib_names, e) < 0)
        return -1;
    pthread_once(&lib_once, blob_s3_lib_start);
    return 0;
}

/* A callback of curl: the next bytes to send. */
static size_t blob_s3_on_read(char *to, size_t size, size_t n, void *ctx)
{
    struct blob_s3_exchange *x = ctx;
    size_t left = x->n - x->sent;

    n = size * n < left ? size * n : left;
    memcpy(to, x->put + x->sent, n);
    x->sent += n;
    return n;
}

/* A callback of curl: takes bytes; 0 where there are too many. */
static size_t blob_s3_on_data(char *data, size_t size, size_t n, void *ctx)
{
    struct blob_s3_exchange *x = ctx;

    buf_add(x->out, data, size * n);
    return x->out->cut ? 0 : size * n;
}

static int blob_s3_on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    return stop_requested();
}

/* https://s3.REGION.amazonaws.com/BUCKET/PREFIX/KEY, or the endpoint that the environment names. */
static char *blob_s3_url_of(const struct blob_s3_exchange *x)
{
    const char *own = blob_s3_setting("AWS_ENDPOINT_URL", NULL);
    char *host = own ? xstrdup(own) : xasprintf("https://s3.%s.amazonaws.com",
                                                blob_s3_setting("AWS_REGION", "us-east-1"));
    size_t n = strlen(host);
    char *url;

    while (n && host[n - 1] == '/')
        host[--n] = 0;
    url = xasprintf("%s/%s%s%s", host, x->place + 5, x->place[strlen(x->place) - 1] == '/' ? "" : "/", x->key);
    free(host);
    return url;
}

/* The request's extra headers; the caller frees the list. */
static struct curl_slist *blob_s3_headers_of(const struct blob_s3_exchange *x)
{
    const char *token = blob_s3_setting("AWS_SESSION_TOKEN", NULL);
    struct curl_slist *h;
    char sha[65], *line;

    sha256_hex("", 0, sha);
    line = xasprintf("x-amz-content-sha256: %s", x->put ? x->key : sha);
    h = lib.curl_slist_append(NULL, line);
    free(line);
    if (token) {
        line = xasprintf("x-amz-security-token: %s", token);
        h = lib.curl_slist_append(h, line);
        free(line);
    }
    return h; /* each of these is signed, an empty "Expect:" too: so there is none */
}

/* Sets curl's options for a GET or a signed PUT. */
static void blob_s3_describe(CURL *h, struct blob_s3_exchange *x)
{
    lib.setopt(h, CURLOPT_NOSIGNAL, 1L);
    lib.setopt(h, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
    lib.setopt(h, CURLOPT_TIMEOUT, REQUEST_S);
    lib.setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    lib.setopt(h, CURLOPT_WRITEFUNCTION, blob_s3_on_data);
    lib.setopt(h, CURLOPT_WRITEDATA, x);
    lib.setopt(h, CURLOPT_NOPROGRESS, 0L);
    lib.setopt(h, CURLOPT_XFERINFOFUNCTION, blob_s3_on_progress);
    if (!x->put)
        return;
    lib.setopt(h, CURLOPT_UPLOAD, 1L);
    lib.setopt(h, CURLOPT_READFUNCTION, blob_s3_on_read);
    lib.setopt(h, CURLOPT_READDATA, x);
    lib.setopt(h, CURLOPT_INFILESIZE_LARGE, (curl_off_t)x->n);
}

/* HTTP status, or 0 with *ret_why when nothing was answered. */
static long blob_s3_try_once(struct blob_s3_exchange *x, const char **ret_why)
{
    CURL *h = lib.curl_easy_init();
    struct curl_slist *headers = blob_s3_headers_of(x);
    char *url = blob_s3_url_of(x),
         *who = xasprintf("%s:%s", blob_s3_setting("AWS_ACCESS_KEY_ID", ""),
                          blob_s3_setting("AWS_SECRET_ACCESS_KEY", ""));
    char *scope = xasprintf("aws:amz:%s:s3", blob_s3_setting("AWS_REGION", "us-east-1"));
    long status = 0;
    CURLcode rc;

    lib.setopt(h, CURLOPT_URL, url);
    lib.setopt(h, CURLOPT_HTTPHEADER, headers);
    lib.setopt(h, CURLOPT_USERPWD, who);
    lib.setopt(h, CURLOPT_AWS_SIGV4, scope);
    blob_s3_describe(h, x);
    rc = lib.curl_easy_perform(h);
    lib.getinfo(h, CURLINFO_RESPONSE_CODE, &status);
    *ret_why = rc == CURLE_OK ? "" : lib.curl_easy_strerror(rc);
    lib.curl_slist_free_all(headers);
    lib.curl_easy_cleanup(h);
    free(scope);
    free(who);
    free(url);
    return rc == CURLE_OK ? status : 0;
}

/* Runs a request and tries again what may pass. -1: it failed; x tells the HTTP status. */
static int blob_s3_exchange_run(struct blob_s3_exchange *x, struct err *e)
{
    size_t had = x->out->n;
    const char *why = "";
    long status = 0;

    if (blob_s3_check(x->place, e) < 0)
        return -1;
    for (int i = 0; i < TRIES && !stop_requested(); i++) {
        if (i)
            nanosleep(&(struct timespec){.tv_nsec = 200000000L * i}, NULL);
        x->out->n = had;
        x->sent = 0;
        status = blob_s3_try_once(x, &why);
        if (x->out->cut)
            return err_set(e, ERR_ENV, "artefact %.16s in '%s' is larger than an artefact may be", x->key, x->place);
        if (status == 200)
            return 0;
        if (status && status != 429 && status < 500)
            break;
    }
    if (stop_requested())
        return err_set(e, ERR_STOP, "interrupted");
    if (!status)
        return err_set(e, ERR_ENV, "'%s' does not answer: %s", x->place, why);
    return err_set(e, ERR_ENV, "'%s' answers %ld to a %s of artefact %.16s", x->place, status, x->put ? "PUT" : "GET",
                   x->key);
}

/* Stores n bytes under their SHA-256. */
int blob_s3_put(const char *place, const void *data, size_t n, const char *sha256, struct err *e)
{
    struct buf said;
    struct blob_s3_exchange x = {.place = place, .key = sha256, .put = data, .n = n, .out = &said};
    int rc;

    buf_init(&said, 1 << 16);
    rc = blob_s3_exchange_run(&x, e);
    buf_free(&said);
    return rc;
}

int blob_s3_get(const char *place, const char *sha256, struct buf *out, struct err *e)
{
    struct blob_s3_exchange x = {.place = place, .key = sha256, .out = out};

    return blob_s3_exchange_run(&x, e);
}
