/* lexer.h - a lexer for CUDA C++ that keeps every byte: tokens cover the source without gaps, comments and white
 * space included, so a rewriter copies what it does not understand. It never fails: an unfinished string or comment
 * ends at the end of its line or file, and bytes that start no token are one-byte punctuators. */
#ifndef MC_TRANSLATE_LEXER_H
#define MC_TRANSLATE_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tok_kind {
    TOK_SPACE,     /* white space, line continuations */
    TOK_COMMENT,
    TOK_NEWLINE,   /* one '\n'; inside a directive it ends the directive */
    TOK_IDENT,     /* identifiers and keywords */
    TOK_NUMBER,    /* preprocessing number */
    TOK_STRING,    /* "..." with prefix, raw strings too */
    TOK_CHAR,
    TOK_PUNCT,     /* one character; only '::' and '->' are two. '<<<' is three tokens */
    TOK_END        /* one at the end, empty */
};

struct tok {
    enum tok_kind kind;
    uint32_t line;    /* 1-based */
    size_t at, n;     /* bytes [at, at+n) of the source */
    bool directive;   /* inside a preprocessor directive, its '#' and continued lines included */
};

struct toks {
    const char *src; /* borrowed */
    size_t n_src;
    struct tok *v;   /* ends with TOK_END */
    size_t n;        /* TOK_END not counted */
    uint64_t *looks; /* NULL, or counts each look at a token: what tests hold against the size of the source */
};

void lex(const char *src, size_t n, struct toks *ret); /* ret is freed with toks_free; looks is NULL */
void toks_free(struct toks *t);

bool tok_is(const struct toks *t, size_t i, const char *text); /* same bytes? false past the end */
bool tok_is_any(const struct toks *t, size_t i, const char *words); /* one of the words, each ended by a zero? */
bool tok_is_ident(const struct toks *t, size_t i);
bool tok_same_text(const struct toks *t, size_t a, size_t b);  /* both exist */
bool tok_blank(const struct toks *t, size_t i);                /* space, comment or newline */
/* Nearest token that is not blank, from i on (or down from i): TOK_END's index, respectively SIZE_MAX, if there is
 * none. */
size_t tok_next(const struct toks *t, size_t i);
size_t tok_prev(const struct toks *t, size_t i);
size_t tok_after(const struct toks *t, size_t i);  /* as tok_next, behind i */
size_t tok_before(const struct toks *t, size_t i); /* as tok_prev, in front of i */
size_t tok_end_of_directive(const struct toks *t, size_t i); /* the first token from i on that is in no directive */

#endif
