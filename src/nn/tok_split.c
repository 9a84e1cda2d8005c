/* tok_split.c - the pre-tokenizer: cuts text into pieces with the regex that the file gives.
 *
 * 'tokenizers' runs Oniguruma (Ruby syntax), we run PCRE2 with UTF and UCP. The patterns agree after a small
 * translation: PCRE2's \s also takes U+180E, so \s and \S are spelt out; \p{L}, \p{M} and \p{N} learn the newest
 * characters; ^ and $ are per line in Ruby; set operations inside [...] exist only there and are refused. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "nn/tok_internal.h"

const char qwen3_regex[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const char gpt2_regex[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

#define SPACE_SET                                                                                                     \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define NON_SPACE_SET                                                                                                 \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}" \
    "\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"

/* Characters that Unicode 15 and 16 added, as 'tokenizers' 0.23 classes them: Debian 12's PCRE2 knows Unicode 14. */
static const char new_letters[] =
    "\\x{1c89}-\\x{1c8a}\\x{a7cb}-\\x{a7cd}\\x{a7da}-\\x{a7dc}\\x{105c0}-\\x{105f3}\\x{10d4a}-\\x{10d65}"
    "\\x{10d6f}-\\x{10d85}\\x{10ec2}-\\x{10ec4}\\x{1123f}-\\x{11240}\\x{11380}-\\x{11389}\\x{1138b}"
    "\\x{1138e}\\x{11390}-\\x{113b5}\\x{113b7}\\x{113d1}\\x{113d3}\\x{11bc0}-\\x{11be0}\\x{11f02}"
    "\\x{11f04}-\\x{11f10}\\x{11f12}-\\x{11f33}\\x{1342f}\\x{13441}-\\x{13446}\\x{13460}-\\x{143fa}"
    "\\x{16100}-\\x{1611d}\\x{16d40}-\\x{16d6c}\\x{18cff}\\x{1b132}\\x{1b155}\\x{1df25}-\\x{1df2a}"
    "\\x{1e030}-\\x{1e06d}\\x{1e4d0}-\\x{1e4eb}\\x{1e5d0}-\\x{1e5ed}\\x{1e5f0}\\x{2b739}"
    "\\x{2ebf0}-\\x{2ee5d}\\x{31350}-\\x{323af}";
static const char new_marks[] =
    "\\x{897}\\x{cf3}\\x{ece}\\x{10d69}-\\x{10d6d}\\x{10efc}-\\x{10eff}\\x{11241}\\x{113b8}-\\x{113c0}"
    "\\x{113c2}\\x{113c5}\\x{113c7}-\\x{113ca}\\x{113cc}-\\x{113d0}\\x{113d2}\\x{113e1}-\\x{113e2}"
    "\\x{11f00}-\\x{11f01}\\x{11f03}\\x{11f34}-\\x{11f3a}\\x{11f3e}-\\x{11f42}\\x{11f5a}\\x{13440}"
    "\\x{13447}-\\x{13455}\\x{1611e}-\\x{1612f}\\x{1e08f}\\x{1e4ec}-\\x{1e4ef}\\x{1e5ee}-\\x{1e5ef}";
static const char new_numbers[] =
    "\\x{10d40}-\\x{10d49}\\x{116d0}-\\x{116e3}\\x{11bf0}-\\x{11bf9}\\x{11f50}-\\x{11f59}"
    "\\x{16130}-\\x{16139}\\x{16d70}-\\x{16d79}\\x{1ccf0}-\\x{1ccf9}\\x{1d2c0}-\\x{1d2d3}"
    "\\x{1e4f0}-\\x{1e4f9}\\x{1e5f1}-\\x{1e5fa}";

struct tok_split_stage {
    pcre2_code *re; /* NULL: add_prefix_space */
    pcre2_match_data *md;
};

struct splitter {
    struct tok_split_stage *stages;
    size_t n;
    pcre2_match_context *mc;
    pcre2_jit_stack *stack;
};

struct splitter *splitter_new(void)
{
    struct splitter *p = xcalloc(1, sizeof *p);

    p->mc = pcre2_match_context_create(NULL);
    p->stack = pcre2_jit_stack_create(32 << 10, 16 << 20, NULL);
    if (p->stack)
        pcre2_jit_stack_assign(p->mc, NULL, p->stack);
    pcre2_set_match_limit(p->mc, 2000000000u);
    pcre2_set_heap_limit(p->mc, 1 << 20); /* KiB */
    return p;
}

void splitter_free(struct splitter *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++) {
        pcre2_match_data_free(p->stages[i].md);
        pcre2_code_free(p->stages[i].re);
    }
    pcre2_jit_stack_free(p->stack);
    pcre2_match_context_free(p->mc);
    free(p->stages);
    free(p);
}

static struct tok_split_stage *tok_split_add_stage(struct splitter *p)
{
    p->stages = xrealloc(p->stages, (p->n + 1) * sizeof *p->stages);
    memset(&p->stages[p->n], 0, sizeof *p->stages);
    return &p->stages[p->n++];
}

void splitter_add_prefix_space(struct splitter *p)
{
    tok_split_add_stage(p);
}

/* "\p{L}", "\P{N}" and so on at s: the characters that PCRE2 may not know yet; NULL for any other escape. */
static const char *tok_split_newer_class(const char *s)
{
    if ((s[1] != 'p' && s[1] != 'P') || s[2] != '{' || !s[3] || s[4] != '}')
        return NULL;
    return s[3] == 'L' ? new_letters : s[3] == 'M' ? new_marks : s[3] == 'N' ? new_numbers : NULL;
}

/* One escape sequence at s[0] == '\\'. Returns the bytes read. */
static size_t tok_split_translate_escape(const char *s, bool in_set, struct buf *out)
{
    const char *newer = tok_split_newer_class(s);

    if (newer && !(in_set && s[1] == 'P')) {
        buf_addf(out, in_set ? "\\p{%c}%s" : s[1] == 'P' ? "[^\\p{%c}%s]" : "[\\p{%c}%s]", s[3], newer);
        return 5;
    }
    if (s[1] == 's')
        buf_adds(out, in_set ? SPACE_SET : "[" SPACE_SET "]");
    else if (s[1] == 'S')
        buf_adds(out, in_set ? NON_SPACE_SET : "[^" SPACE_SET "]");
    else
        buf_add(out, s, s[1] ? 2 : 1);
    return s[1] ? 2 : 1;
}

/* Appends a Python-like regex in PCRE2's dialect. ERR_INPUT: it uses what PCRE2 lacks. */
static int tok_split_translate(const char *s, struct buf *out, struct err *e)
{
    const char *whole = s;
    bool in_set = false;

    while (*s) {
        if (*s == '\\') {
            s += tok_split_translate_escape(s, in_set, out);
            continue;
        }
        if (in_set && (*s == '[' || (*s == '&' && s[1] == '&')))
            return err_set(e, ERR_INPUT, "pre-tokenizer pattern '%.120s' uses set operations, which we do not support",
                           whole);
        if (!in_set && *s == '[') {
            in_set = true;
            buf_addc(out, *s++);
            if (*s == '^')
                buf_addc(out, *s++);
            if (*s == ']') { /* first in the set: itself */
                buf_adds(out, "\\]");
                s++;
            }
            continue;
        }
        if (*s == ']')
            in_set = false;
        buf_addc(out, *s++);
    }
    return 0;
}

/* Adds a stage that splits by a regex. shown: the pattern as the user wrote it. */
static int tok_split_compile(struct splitter *p, const char *pattern, const char *shown, struct err *e)
{
    PCRE2_SIZE at;
    PCRE2_UCHAR why[160];
    int code;
    pcre2_code *re = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE,
                                   &code, &at, NULL);
    struct tok_split_stage *st;

    if (!re) {
        pcre2_get_error_message(code, why, sizeof why);
        return err_set(e, ERR_INPUT, "pre-tokenizer pattern '%.120s' is not a valid regex: %s", shown, (char *)why);
    }
    pcre2_jit_compile(re, PCRE2_JIT_COMPLETE); /* without JIT it is slower, not wrong */
    st = tok_split_add_stage(p);
    st->re = re;
    st->md = pcre2_match_data_create_from_pattern(re, NULL);
    return 0;
}

int splitter_add_regex(struct splitter *p, const char *regex, struct err *e)
{
    struct buf b;
    int rc;

    buf_init(&b, BUF_MAX_TEXT);
    rc = tok_split_translate(regex, &b, e) < 0 ? -1 : tok_split_compile(p, b.p, regex, e);
    buf_free(&b);
    return rc;
}

int splitter_add_literal(struct splitter *p, const char *text, struct err *e)
{
    struct buf b;
    int rc;

    buf_init(&b, BUF_MAX_TEXT);
    for (const char *s = text; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 0x80 && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z'))
            buf_addc(&b, '\\');
        buf_addc(&b, *s);
    }
    rc = tok_split_compile(p, b.p, text, e);
    buf_free(&b);
    return rc;
}

static int tok_split_run_from(struct splitter *p, size_t k, const char *s, size_t n, piece_fn *f, void *ctx,
                              struct err *e);

/* Runs the stages behind k on the text with a space in front. */
static int tok_split_run_prefix_space(struct splitter *p, size_t k, const char *s, size_t n, piece_fn *f, void *ctx,
                                      struct err *e)
{
    char *t;
    int rc;

    if (s[0] == ' ')
        return tok_split_run_from(p, k + 1, s, n, f, ctx, e);
    t = xmalloc(n + 1);
    t[0] = ' ';
    memcpy(t + 1, s, n);
    rc = tok_split_run_from(p, k + 1, t, n + 1, f, ctx, e);
    free(t);
    return rc;
}

/* The place behind the UTF-8 character at 'at'. */
static size_t tok_split_after_char(const char *s, size_t n, size_t at)
{
    for (at++; at < n && ((unsigned char)s[at] & 0xc0) == 0x80; at++)
        ;
    return at;
}

/* Runs stage k: matches and what is between them go to the next stage. */
static int tok_split_run_regex(struct splitter *p, size_t k, const char *s, size_t n, piece_fn *f, void *ctx,
                               struct err *e)
{
    struct tok_split_stage *st = &p->stages[k];
    size_t done = 0, at = 0; /* done: end of the last piece; at: where the search starts */
    PCRE2_SIZE *o = pcre2_get_ovector_pointer(st->md);

    while (at <= n) {
        int rc = pcre2_match(st->re, (PCRE2_SPTR)s, n, at, PCRE2_NO_UTF_CHECK, st->md, p->mc);
        size_t from, to;
        if (rc == PCRE2_ERROR_NOMATCH)
            break;
        if (rc < 0)
            return err_set(e, ERR_INPUT, "the pre-tokenizer's regex gives up on this text (PCRE2 error %d)", rc);
        from = o[0];
        to = o[1];
        if (from > done && tok_split_run_from(p, k + 1, s + done, from - done, f, ctx, e) < 0)
            return -1;
        if (to > from && tok_split_run_from(p, k + 1, s + from, to - from, f, ctx, e) < 0)
            return -1;
        done = from > done || to > from ? to : done;
        at = to > from ? to : tok_split_after_char(s, n, to);
    }
    return done < n ? tok_split_run_from(p, k + 1, s + done, n - done, f, ctx, e) : 0;
}

/* Runs stage k and those behind it on a text; f gets the pieces that the last one leaves. */
static int tok_split_run_from(struct splitter *p, size_t k, const char *s, size_t n, piece_fn *f, void *ctx,
                              struct err *e)
{
    if (n == 0)
        return 0;
    if (k == p->n)
        return f(ctx, s, n, e);
    return p->stages[k].re ? tok_split_run_regex(p, k, s, n, f, ctx, e)
           : tok_split_run_prefix_space(p, k, s, n, f, ctx, e);
}

int splitter_run(struct splitter *p, const char *s, size_t n, piece_fn *f, void *ctx, struct err *e)
{
    return tok_split_run_from(p, 0, s, n, f, ctx, e);
}
