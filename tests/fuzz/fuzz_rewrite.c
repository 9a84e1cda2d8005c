/* fuzz_rewrite.c - any bytes as a CUDA source: tokens cover them without gaps, and rewriting keeps the number of
 * lines and ends. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "translate/lexer.h"
#include "translate/simt_rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t lines(const char *p, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += p[i] == '\n';
    return count;
}

static void check_tokens(const char *s, size_t n)
{
    struct toks t;
    size_t at = 0;

    lex(s, n, &t);
    for (size_t i = 0; i < t.n; i++) {
        if (t.v[i].at != at || t.v[i].n == 0)
            abort();
        at += t.v[i].n;
    }
    if (at != n || t.v[t.n].kind != TOK_END)
        abort();
    toks_free(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *s = (const char *)data;
    struct err e = ERR_INIT;
    struct buf out;
    int rc;

    check_tokens(s, size);
    buf_init(&out, BUF_MAX_TEXT);
    rc = simt_rewrite(s, size, "fuzz.cu", &out, &e);
    if ((rc < 0) != (size && memchr(s, 0, size) != NULL))
        abort();
    if (rc == 0 && lines(out.p, out.n) != lines(s, size) + 1)
        abort();
    buf_free(&out);
    return 0;
}
