/* test_blob.c - bytes by content in a bucket that answers what it should not, and in a folder. The bucket's protocol as
 * such is tried by tests/serve/test_kinds.py. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "store/blob.h"

static int bucket = -1;

/* Answers every request with 4,000 bytes. */
static void *answer(void *arg)
{
    char text[8192];
    int fd;

    while ((fd = accept(bucket, NULL, NULL)) >= 0) {
        int n = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n%04000d", 0);
        char asked[4096];
        if (recv(fd, asked, sizeof asked, 0) > 0)
            (void)!send(fd, text, (size_t)n, MSG_NOSIGNAL);
        close(fd);
    }
    return NULL;
}

static void what_is_too_large_is_said_so(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    struct err e = ERR_INIT;
    char url[64], sha[65];
    pthread_t thread;
    struct buf out;

    bucket = socket(AF_INET, SOCK_STREAM, 0);
    assert_return_code(bind(bucket, (struct sockaddr *)&at, sizeof at), 0);
    assert_return_code(listen(bucket, 8), 0);
    assert_return_code(getsockname(bucket, (struct sockaddr *)&at, &n), 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(at.sin_port));
    setenv("AWS_ENDPOINT_URL", url, 1);
    setenv("AWS_ACCESS_KEY_ID", "k", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
    unsetenv("http_proxy"), unsetenv("HTTP_PROXY"), unsetenv("all_proxy"), unsetenv("ALL_PROXY");
    assert_int_equal(pthread_create(&thread, NULL, answer, NULL), 0);
    sha256_hex("x", 1, sha);
    buf_init(&out, 100);
    assert_int_equal(blob_get("s3://b/p", sha, &out, &e), -1);
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.msg, "larger than an artefact may be"));
    buf_free(&out);
    shutdown(bucket, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(bucket);
}

/* What cannot be put leaves nothing behind. */
static void a_failed_put_leaves_no_file(void **state)
{
    char *dir = dir_temp("test-blob", NULL), sha[65], *path, *deep;
    struct err e = ERR_INIT;
    char **names;
    size_t n;

    sha256_hex("abc", 3, sha);
    deep = xasprintf("%s/%.2s", dir, sha);
    path = xasprintf("%s/%s", deep, sha + 2);
    assert_int_equal(dir_make(path, &e), 0); /* a folder stands where the file should be */
    assert_int_equal(blob_put(dir, "abc", 3, sha, &e), -1);
    assert_int_equal(dir_list(deep, &names, &n, &e), 0);
    assert_int_equal(n, 1);
    names_free(names, n);
    dir_remove(dir, NULL);
    free(path), free(deep), free(dir);
}

static char *put_one(const char *dir, const char *text, time_t used)
{
    const struct timespec at[2] = {{.tv_sec = used}, {.tv_sec = used}};
    struct err e = ERR_INIT;
    char sha[65], *path;

    sha256_hex(text, strlen(text), sha);
    assert_int_equal(blob_put(dir, text, strlen(text), sha, &e), 0);
    path = xasprintf("%s/%.2s/%s", dir, sha, sha + 2);
    assert_return_code(utimensat(AT_FDCWD, path, at, 0), 0);
    return path;
}

/* What is old goes, and what is too much but was not used lately; what is nobody's artefact stays. */
static void a_folder_is_tidied(void **state)
{
    char *dir = dir_temp("test-blob", NULL), *german = path_join(dir, "de"), *own = path_join(dir, "notes.txt");
    char *words = path_join(german, "words.txt"), *all[4], large[65536];
    time_t now = time(NULL);
    struct err e = ERR_INIT;

    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    dir_make(german, &e);
    assert_int_equal(file_write(own, "mine", 4, &e), 0);
    assert_int_equal(file_write(words, "Wort", 4, &e), 0);
    all[0] = put_one(dir, "old", now - 90000);
    all[1] = put_one(dir, large, now - 8000);
    all[2] = put_one(dir, "younger", now - 7000);
    all[3] = put_one(dir, "new", now);
    assert_int_equal(blob_tidy(dir, 0, 0, 0, &e), 0); /* no limits */
    assert_true(file_exists(all[0]));
    assert_int_equal(blob_tidy(dir, 0, 86400, 0, &e), 0);
    assert_false(file_exists(all[0]));
    assert_true(file_exists(all[1]));
    assert_int_equal(blob_tidy(dir, 40000, 86400, 0, &e), 0);
    assert_false(file_exists(all[1]));
    assert_true(file_exists(all[2]) && file_exists(all[3]));
    assert_int_equal(blob_tidy(dir, 1, 1, 0, &e), 0); /* what was used within the hour may be on its way */
    assert_true(!file_exists(all[2]) && file_exists(all[3]));
    assert_true(file_exists(own) && file_exists(words));
    dir_remove(dir, NULL);
    for (int i = 0; i < 4; i++)
        free(all[i]);
    free(words), free(own), free(german), free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_too_large_is_said_so),
        cmocka_unit_test(a_failed_put_leaves_no_file),
        cmocka_unit_test(a_folder_is_tidied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
