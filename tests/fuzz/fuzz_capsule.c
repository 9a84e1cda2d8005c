/* fuzz_capsule.c - a capsule is a stranger's file: the input, behind a right checksum and, where its first byte is
 * odd, as the whole file. It is refused with one line, or read, and what its header names lies within the file. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "exec/capsule.h"
#include "exec/exec_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void put(int fd, const void *p, size_t n)
{
    if (write(fd, p, n) != (ssize_t)n)
        abort();
}

static void check_line(const struct err *e)
{
    if (!e->msg[0] || strchr(e->msg, '\n'))
        abort();
}

/* Every byte of a part is read: it must be ours. */
static unsigned touch(const struct capsule *c, const json_t *part)
{
    size_t n = 0;
    const unsigned char *p = capsule_bytes(c, part, &n);
    unsigned sum = 0;

    for (size_t i = 0; p && i < n; i++)
        sum += p[i];
    return sum;
}

static void look_at(const struct capsule *c)
{
    struct err e = ERR_INIT;
    struct exec_log log = {0};
    volatile unsigned sum = 0;
    const char *key;
    json_t *v, *item;
    size_t i;

    json_object_foreach(c->head, key, v) {
        sum += touch(c, v);
        json_array_foreach(v, i, item)
            sum += touch(c, item);
    }
    if (capsule_log(c, &log, &e) == 0)
        exec_log_free(&log);
    else
        check_line(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct capsule c = {0};
    struct err e = ERR_INIT;
    char path[64], sum[65];
    int fd = memfd_create("fuzz", 0);

    if (fd < 0)
        abort();
    if (n == 0 || data[0] % 2 == 0) {
        sha256_hex(data, n, sum);
        put(fd, "MCCAPS2\n", 8);
        put(fd, sum, 64);
    }
    put(fd, data, n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (capsule_read(path, &c, &e) == 0) {
        look_at(&c);
        capsule_free(&c);
    } else {
        check_line(&e);
    }
    close(fd);
    return 0;
}
