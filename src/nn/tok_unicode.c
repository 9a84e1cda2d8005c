/* tok_unicode.c - UTF-8, the few Unicode properties that tokenisation needs, canonical composition, the byte
 * alphabet. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "nn/tok_internal.h"

/* True for n bytes of UTF-8 without surrogates and overlong forms. */
bool utf8_valid(const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s, *end = p + n;

    while (p < end) {
        unsigned c = *p++, lo = 0x80, hi = 0xbf;
        int more = c < 0x80 ? 0 : c < 0xc2 ? -1 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : c < 0xf5 ? 3 : -1;
        if (more < 0 || end - p < more)
            return false;
        if (c == 0xe0) lo = 0xa0;
        if (c == 0xed) hi = 0x9f;
        if (c == 0xf0) lo = 0x90;
        if (c == 0xf4) hi = 0x8f;
        for (; more > 0; more--, p++, lo = 0x80, hi = 0xbf)
            if (*p < lo || *p > hi)
                return false;
    }
    return true;
}

uint32_t utf8_next(const char **s, const char *end)
{
    const unsigned char *p = (const unsigned char *)*s;
    int more = *p < 0x80 ? 0 : *p < 0xe0 ? 1 : *p < 0xf0 ? 2 : 3;
    uint32_t cp = *p++ & (more ? 0x3fu >> more : 0x7f);

    for (; more > 0 && (const char *)p < end; more--)
        cp = cp << 6 | (*p++ & 0x3f);
    *s = (const char *)p;
    return cp;
}

uint32_t utf8_before(const char *begin, const char *s)
{
    const char *p = s - 1;

    while (p > begin && ((unsigned char)*p & 0xc0) == 0x80)
        p--;
    return utf8_next(&p, s);
}

size_t utf8_put(uint32_t cp, char out[4])
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)cp, (utf8proc_uint8_t *)out);
}

bool is_white_space(uint32_t cp)
{
    return (cp >= 9 && cp <= 13) || cp == 0x20 || cp == 0x85 || cp == 0xa0 || cp == 0x1680 ||
           (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 || cp == 0x202f || cp == 0x205f ||
               cp == 0x3000;
}

bool is_word(uint32_t cp)
{
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_LU: case UTF8PROC_CATEGORY_LL: case UTF8PROC_CATEGORY_LT: case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: case UTF8PROC_CATEGORY_MN: case UTF8PROC_CATEGORY_MC: case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND: case UTF8PROC_CATEGORY_NL: case UTF8PROC_CATEGORY_PC:
        return true;
    default:
        return cp == 0x200c || cp == 0x200d || (cp >= 0x24b6 && cp <= 0x24e9); /* joiners; circled letters */
    }
}

static int tok_unicode_ccc(int32_t cp)
{
    return utf8proc_get_property(cp)->combining_class;
}

/* Stable counting sort of one run of combining marks. utf8proc's own ordering is quadratic in the run. */
static void tok_unicode_sort_marks(int32_t *v, size_t n, int32_t *tmp)
{
    size_t at[257] = {0};

    for (size_t i = 0; i < n; i++)
        at[tok_unicode_ccc(v[i]) + 1]++;
    for (int c = 0; c < 256; c++)
        at[c + 1] += at[c];
    for (size_t i = 0; i < n; i++)
        tmp[at[tok_unicode_ccc(v[i])]++] = v[i];
    memcpy(v, tmp, n * sizeof *v);
}

/* Sorts runs of combining marks by their class, as Unicode's canonical order wants. */
static void tok_unicode_order_marks(int32_t *v, size_t n)
{
    int32_t *tmp = NULL;

    for (size_t i = 0; i < n;) {
        size_t from = i, k;
        bool sorted = true;
        if (tok_unicode_ccc(v[i]) == 0) {
            i++;
            continue;
        }
        for (i++; i < n && tok_unicode_ccc(v[i]) != 0; i++)
            sorted &= tok_unicode_ccc(v[i - 1]) <= tok_unicode_ccc(v[i]);
        k = i - from;
        if (sorted)
            continue;
        if (!tmp)
            tmp = xmalloc(n * sizeof *tmp);
        tok_unicode_sort_marks(v + from, k, tmp);
    }
    free(tmp);
}

/* Everything below U+0300 is stable on its own, and only a character from U+0300 on can combine with one before. */
static bool tok_unicode_plainly_stable(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] >= 0xcc)
            return false;
    return true;
}

const char *nfc(const char *s, size_t *n, struct buf *scratch)
{
    const char *p = s, *end = s + *n;
    size_t cap, k = 0;
    int32_t *v;
    int boundary = 0;

    if (tok_unicode_plainly_stable(s, *n))
        return s;
    cap = *n * 2 + 32; /* bytes of UTF-8 >= its characters; a character decomposes into at most 4 */
    v = xmalloc(cap * sizeof *v);
    while (p < end) {
        if (cap - k < 32) {
            cap *= 2;
            v = xrealloc(v, cap * sizeof *v);
        }
        k += (size_t)utf8proc_decompose_char((int32_t)utf8_next(&p, end), v + k, (utf8proc_ssize_t)(cap - k),
                                             UTF8PROC_DECOMPOSE | UTF8PROC_STABLE, &boundary);
    }
    tok_unicode_order_marks(v, k);
    k = (size_t)utf8proc_normalize_utf32(v, (utf8proc_ssize_t)k, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    buf_clear(scratch);
    for (size_t i = 0; i < k; i++) {
        char c[4];
        buf_add(scratch, c, utf8_put((uint32_t)v[i], c));
    }
    free(v);
    *n = scratch->n;
    return scratch->p;
}

static bool tok_unicode_is_printable(unsigned b)
{
    return (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
}

uint32_t byte_to_char(uint8_t b)
{
    uint32_t k = 0;

    if (tok_unicode_is_printable(b))
        return b;
    for (unsigned i = 0; i < b; i++)
        k += !tok_unicode_is_printable(i);
    return 256 + k;
}

int char_to_byte(uint32_t cp)
{
    uint32_t k = 255;

    if (cp < 256)
        return tok_unicode_is_printable(cp) ? (int)cp : -1;
    if (cp >= 256 + 68)
        return -1;
    for (unsigned b = 0; b < 256; b++)
        if (!tok_unicode_is_printable(b) && ++k == cp)
            return (int)b;
    return -1;
}
