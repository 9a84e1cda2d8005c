/* hash.c - see hash.h. */
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define PIECE ((size_t)1 << 16)

void sha256_start(struct sha256 *h)
{
    h->ctx = EVP_MD_CTX_new();
    EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL);
}

void sha256_add(struct sha256 *h, const void *data, size_t n)
{
    EVP_DigestUpdate(h->ctx, data, n);
}

/* The length goes before the bytes. */
void sha256_adds(struct sha256 *h, const char *s)
{
    uint64_t n = s ? strlen(s) : 0;

    sha256_add(h, &n, sizeof n);
    sha256_add(h, s, n);
}

void sha256_end(struct sha256 *h, char out[65])
{
    static const char hex[] = "0123456789abcdef";
    unsigned char d[32];

    EVP_DigestFinal_ex(h->ctx, d, NULL);
    EVP_MD_CTX_free(h->ctx);
    h->ctx = NULL;
    for (int i = 0; i < 32; i++) {
        out[2 * i] = hex[d[i] >> 4];
        out[2 * i + 1] = hex[d[i] & 15];
    }
    out[64] = 0;
}

void sha256_hex(const void *data, size_t n, char out[65])
{
    struct sha256 h;

    sha256_start(&h);
    sha256_add(&h, data, n);
    sha256_end(&h, out);
}

int sha256_add_fd(struct sha256 *h, int fd)
{
    char *piece = xmalloc(PIECE);
    ssize_t n;

    while ((n = read(fd, piece, PIECE)) > 0)
        sha256_add(h, piece, (size_t)n);
    free(piece);
    return n < 0 ? -1 : 0;
}

int sha256_file(const char *path, char out[65])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc, why;
    struct sha256 h;
    char hex[65];

    if (fd < 0)
        return -1;
    sha256_start(&h);
    rc = sha256_add_fd(&h, fd);
    why = errno;
    sha256_end(&h, hex);
    close(fd);
    errno = why;
    if (rc == 0)
        memcpy(out, hex, sizeof hex);
    return rc;
}

uint64_t hash64(const void *data, size_t n, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t h = 0xcbf29ce484222325u ^ seed;

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}
