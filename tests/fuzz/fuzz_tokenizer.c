/* fuzz_tokenizer.c - the input up to the first 0 byte is a tokenizer.json, the rest is text for it: the file is refused
 * with one line or the text encodes to ids inside the vocabulary. A text alone goes to a fixed byte tokenizer and must
 * come back as it was, invalid bytes as U+FFFD. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "nn/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void encode_all(struct tokenizer *t, const char *s, size_t n)
{
    struct err e = ERR_INIT;
    struct ivec ids = {0};
    struct buf out;

    buf_init(&out, BUF_MAX_TEXT);
    for (int mode = TOK_PLAIN; mode <= TOK_SPECIAL; mode++) {
        ids.n = 0;
        if (tokenizer_encode(t, s, n, (enum tokenizer_mode)mode, &ids, &e) < 0)
            continue;
        for (size_t i = 0; i < ids.n; i++)
            if (ids.v[i] < 0 || ids.v[i] >= tokenizer_size(t))
                abort();
        tokenizer_decode(t, ids.v, ids.n, false, &out);
    }
    buf_free(&out);
    ivec_free(&ids);
}

static struct tokenizer *byte_tokenizer(void)
{
    static const char head[] = "{\"model\":{\"vocab\":{",
        tail[] = "},\"merges\":[\"a b\"]},\"pre_tokenizer\":{\"type\":"
        "\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}}";
    struct err e = ERR_INIT;
    struct buf b;
    struct tokenizer *t;
    int extra = 256;

    buf_init(&b, 1 << 20);
    buf_adds(&b, head);
    for (int i = 0; i < 256; i++) {
        int plain = (i >= 33 && i < 127) || (i >= 161 && i < 173) || i >= 174;
        buf_addf(&b, "\"\\u%04x\":%d,", plain ? i : extra++, i);
    }
    buf_adds(&b, "\"ab\":256");
    buf_adds(&b, tail);
    if (!(t = tokenizer_parse(b.p, b.n, "bytes", &e)))
        abort();
    buf_free(&b);
    return t;
}

static void round_trip(const char *s, size_t n)
{
    static struct tokenizer *t;
    struct err e = ERR_INIT;
    struct ivec ids = {0};
    struct buf want, got;

    if (!t)
        t = byte_tokenizer();
    buf_init(&want, BUF_MAX_TEXT);
    buf_init(&got, BUF_MAX_TEXT);
    utf8_sanitize(&want, s, n);
    if (tokenizer_encode(t, s, n, TOK_PLAIN, &ids, &e) < 0)
        abort();
    tokenizer_decode(t, ids.v, ids.n, false, &got);
    if (got.n != want.n || memcmp(got.p, want.p, got.n))
        abort();
    buf_free(&want);
    buf_free(&got);
    ivec_free(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *s = (const char *)data, *zero = n ? memchr(s, 0, n) : NULL;
    size_t k = zero ? (size_t)(zero - s) : n;
    struct err e = ERR_INIT;
    struct tokenizer *t;

    log_set_level(LOG_ERROR);
    t = tokenizer_parse(s, k, "fuzz", &e);
    if (t)
        encode_all(t, zero ? zero + 1 : "", zero ? n - k - 1 : 0);
    else if (!e.msg[0] || strchr(e.msg, '\n'))
        abort();
    tokenizer_free(t);
    round_trip(s, n);
    return 0;
}
