/* hash.h - content addresses. SHA-256 (libcrypto), because cache keys cover text written by models and must not
 * collide even on purpose; hash64 is for tables and splits only. */
#ifndef MC_HASH_H
#define MC_HASH_H

#include <stddef.h>
#include <stdint.h>

struct sha256 {
    void *ctx;
};
void sha256_start(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *data, size_t n);
void sha256_adds(struct sha256 *h, const char *s); /* adds length and bytes: fields cannot run into each other */
void sha256_end(struct sha256 *h, char out[65]);   /* lower-case hex; releases h */
void sha256_hex(const void *data, size_t n, char out[65]);
/* Adds what is left to read of fd. 0, or -1 with errno. */
int sha256_add_fd(struct sha256 *h, int fd);
/* The hash of a whole file; a FIFO is not waited for. 0, or -1 with errno and out as it was. */
int sha256_file(const char *path, char out[65]);

uint64_t hash64(const void *data, size_t n, uint64_t seed); /* FNV-1a with a splitmix finish */

#endif
