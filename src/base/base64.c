/* base64.c - see base64.h. libcrypto does it. */
#include "base/base64.h"

#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

char *base64_text(const void *data, size_t n)
{
    char *text = xmalloc((n + 2) / 3 * 4 + 1);

    EVP_EncodeBlock((unsigned char *)text, data, (int)n);
    return text;
}

int base64_read(const char *text, struct buf *out, struct err *e)
{
    size_t n = strlen(text), pad = n && text[n - 1] == '=' ? 1 + (n > 1 && text[n - 2] == '=') : 0;
    unsigned char *raw;
    int got;

    if (n % 4 || n > INT_MAX || n / 4 * 3 - pad > out->max - out->n)
        return err_set(e, ERR_INPUT, "a text of %zu bytes is no base64, or too long", n);
    raw = xmalloc(n / 4 * 3 + 1);
    got = EVP_DecodeBlock(raw, (const unsigned char *)text, (int)n);
    if (got >= 0)
        buf_add(out, raw, (size_t)got - pad);
    free(raw);
    return got >= 0 ? 0 : err_set(e, ERR_INPUT, "a text of %zu bytes is no base64", n);
}
