/* lexer.c - splits CUDA C++ into tokens that cover every byte. One function per token kind, dispatched on the first
 * bytes; each takes the start and returns the end. */
#include "translate/lexer.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct scan {
    const char *s;
    size_t n;
};

static char lexer_at(const struct scan *c, size_t i)
{
    return i < c->n ? c->s[i] : 0;
}

static bool lexer_ident_start(char ch)
{
    return isalpha((unsigned char)ch) || ch == '_' || ch == '$' || (unsigned char)ch >= 0x80;
}

static bool lexer_ident_part(char ch)
{
    return lexer_ident_start(ch) || isdigit((unsigned char)ch);
}

/* "\\\n" or "\\\r\n": its length, else 0. */
static size_t lexer_continuation(const struct scan *c, size_t i)
{
    if (lexer_at(c, i) != '\\')
        return 0;
    if (lexer_at(c, i + 1) == '\n')
        return 2;
    return lexer_at(c, i + 1) == '\r' && lexer_at(c, i + 2) == '\n' ? 3 : 0;
}

/* The first place behind blanks and continued lines; a line break ends them. */
static size_t lexer_end_of_space(const struct scan *c, size_t i)
{
    size_t k;

    while (i < c->n)
        if (lexer_at(c, i) != '\n' && isspace((unsigned char)lexer_at(c, i)))
            i++;
        else if ((k = lexer_continuation(c, i)) > 0)
            i += k;
        else
            break;
    return i;
}

/* The place of the line break that ends the comment. */
static size_t lexer_end_of_line_comment(const struct scan *c, size_t i)
{
    size_t k;

    while (i < c->n && lexer_at(c, i) != '\n')
        i += (k = lexer_continuation(c, i)) > 0 ? k : 1;
    return i;
}

/* The place behind the comment's end, or the text's. */
static size_t lexer_end_of_block_comment(const struct scan *c, size_t i)
{
    for (i += 2; i < c->n; i++)
        if (lexer_at(c, i) == '*' && lexer_at(c, i + 1) == '/')
            return i + 2;
    return c->n;
}

static size_t lexer_end_of_ident(const struct scan *c, size_t i)
{
    while (i < c->n && lexer_ident_part(lexer_at(c, i)))
        i++;
    return i;
}

/* A preprocessing number: digits, letters, '.', digit separators and signed exponents. */
static size_t lexer_end_of_number(const struct scan *c, size_t i)
{
    for (i++; i < c->n; i++) {
        char ch = lexer_at(c, i), prev = lexer_at(c, i - 1);
        bool sign = (ch == '+' || ch == '-') && strchr("eEpP", prev);
        bool separator = ch == '\'' && lexer_ident_part(lexer_at(c, i + 1));

        if (!(lexer_ident_part(ch) || ch == '.' || sign || separator))
            break;
    }
    return i;
}

/* From the opening quote to behind the closing one, or to the end of the line when there is none. */
static size_t lexer_end_of_quoted(const struct scan *c, size_t i)
{
    char quote = lexer_at(c, i);
    size_t k;

    for (i++; i < c->n && lexer_at(c, i) != '\n'; i++) {
        if (lexer_at(c, i) == quote)
            return i + 1;
        if ((k = lexer_continuation(c, i)) > 0)
            i += k - 1;
        else if (lexer_at(c, i) == '\\' && i + 1 < c->n && lexer_at(c, i + 1) != '\n')
            i++;
    }
    return i;
}

/* R"delim( ... )delim", i at the quote. A malformed prefix is lexed as an ordinary string. */
static size_t lexer_end_of_raw(const struct scan *c, size_t i)
{
    size_t d = i + 1, nd;

    while (d < c->n && d - i <= 17 && lexer_at(c, d) != '(' && !strchr(" )\\\t\n\"", lexer_at(c, d)))
        d++;
    if (lexer_at(c, d) != '(')
        return lexer_end_of_quoted(c, i);
    nd = d - i - 1;
    for (size_t k = d + 1; k + nd + 1 < c->n; k++)
        if (lexer_at(c, k) == ')' && lexer_at(c, k + 1 + nd) == '"' && !memcmp(c->s + k + 1, c->s + i + 1, nd))
            return k + nd + 2;
    return c->n;
}

/* True if the n letters at i are one of the words, each ended by a zero. */
static bool lexer_prefix_is(const struct scan *c, size_t i, size_t n, const char *words)
{
    for (const char *w = words; *w; w += strlen(w) + 1)
        if (strlen(w) == n && !memcmp(c->s + i, w, n))
            return true;
    return false;
}

/* The end of the name at i, or of the literal that it is the prefix of. */
static size_t lexer_ident_or_literal(const struct scan *c, size_t i, enum tok_kind *kind)
{
    size_t end = lexer_end_of_ident(c, i);

    *kind = TOK_IDENT;
    if (lexer_at(c, end) == '"' && lexer_prefix_is(c, i, end - i, "R\0LR\0uR\0UR\0u8R\0")) {
        *kind = TOK_STRING;
        return lexer_end_of_raw(c, end);
    }
    if ((lexer_at(c, end) == '"' || lexer_at(c, end) == '\'') && lexer_prefix_is(c, i, end - i, "L\0u\0U\0u8\0")) {
        *kind = lexer_at(c, end) == '"' ? TOK_STRING : TOK_CHAR;
        return lexer_end_of_quoted(c, end);
    }
    return end;
}

static size_t lexer_punct(const struct scan *c, size_t i)
{
    char a = lexer_at(c, i), b = lexer_at(c, i + 1);

    return (a == ':' && b == ':') || (a == '-' && b == '>') ? i + 2 : i + 1;
}

/* The end of the token at i, whose kind goes to *kind. */
static size_t lexer_one_token(const struct scan *c, size_t i, enum tok_kind *kind)
{
    char ch = lexer_at(c, i), next = lexer_at(c, i + 1);

    if (ch == '\n') {
        *kind = TOK_NEWLINE;
        return i + 1;
    }
    if (isspace((unsigned char)ch) || lexer_continuation(c, i)) {
        *kind = TOK_SPACE;
        return lexer_end_of_space(c, i);
    }
    if (ch == '/' && (next == '/' || next == '*')) {
        *kind = TOK_COMMENT;
        return next == '/' ? lexer_end_of_line_comment(c, i) : lexer_end_of_block_comment(c, i);
    }
    if (lexer_ident_start(ch))
        return lexer_ident_or_literal(c, i, kind);
    if (isdigit((unsigned char)ch) || (ch == '.' && isdigit((unsigned char)next))) {
        *kind = TOK_NUMBER;
        return lexer_end_of_number(c, i);
    }
    if (ch == '"' || ch == '\'') {
        *kind = ch == '"' ? TOK_STRING : TOK_CHAR;
        return lexer_end_of_quoted(c, i);
    }
    *kind = TOK_PUNCT;
    return lexer_punct(c, i);
}

/* Line breaks in s. */
static uint32_t lexer_lines_in(const char *s, size_t n)
{
    uint32_t lines = 0;

    for (const char *p = s; (p = memchr(p, '\n', (size_t)(s + n - p))); p++)
        lines++;
    return lines;
}

/* The next free token; the array grows. */
static struct tok *lexer_push(struct toks *t, size_t *cap)
{
    if (t->n + 1 >= *cap) {
        *cap = *cap ? *cap * 2 : 256;
        t->v = xrealloc(t->v, *cap * sizeof *t->v);
    }
    return &t->v[t->n];
}

void lex(const char *src, size_t n, struct toks *ret)
{
    struct scan c = {src, n};
    struct toks t = {src, n, NULL, 0, NULL};
    size_t cap = 0, i = 0;
    uint32_t line = 1;
    bool fresh = true, directive = false; /* fresh: only blanks so far on this line */

    while (i < n) {
        struct tok *k = lexer_push(&t, &cap);
        size_t end;

        k->at = i;
        k->line = line;
        end = lexer_one_token(&c, i, &k->kind);
        k->n = end - i;
        if (fresh && k->kind == TOK_PUNCT && src[i] == '#')
            directive = true;
        k->directive = directive && k->kind != TOK_NEWLINE;
        if (k->kind == TOK_NEWLINE)
            fresh = true, directive = false;
        else if (k->kind != TOK_SPACE && k->kind != TOK_COMMENT)
            fresh = false;
        line += lexer_lines_in(src + i, k->n);
        i = end;
        t.n++;
    }
    *lexer_push(&t, &cap) = (struct tok){TOK_END, line, n, 0, false};
    *ret = t;
}

void toks_free(struct toks *t)
{
    free(t->v);
    memset(t, 0, sizeof *t);
}

bool tok_is(const struct toks *t, size_t i, const char *text)
{
    size_t n = strlen(text);

    if (t->looks)
        ++*t->looks;
    return i < t->n && t->v[i].n == n && !memcmp(t->src + t->v[i].at, text, n);
}

bool tok_blank(const struct toks *t, size_t i)
{
    if (t->looks)
        ++*t->looks;
    return i < t->n && t->v[i].kind <= TOK_NEWLINE;
}

size_t tok_next(const struct toks *t, size_t i)
{
    while (i < t->n && tok_blank(t, i))
        i++;
    return i < t->n ? i : t->n;
}

size_t tok_prev(const struct toks *t, size_t i)
{
    if (i == SIZE_MAX)
        return i;
    for (; i < t->n && tok_blank(t, i); i--)
        if (i == 0)
            return SIZE_MAX;
    return i < t->n ? i : SIZE_MAX;
}

bool tok_is_any(const struct toks *t, size_t i, const char *words)
{
    for (const char *w = words; *w; w += strlen(w) + 1)
        if (tok_is(t, i, w))
            return true;
    return false;
}

bool tok_is_ident(const struct toks *t, size_t i)
{
    return i < t->n && t->v[i].kind == TOK_IDENT;
}

bool tok_same_text(const struct toks *t, size_t a, size_t b)
{
    if (t->looks)
        ++*t->looks;
    return t->v[a].n == t->v[b].n && !memcmp(t->src + t->v[a].at, t->src + t->v[b].at, t->v[a].n);
}

size_t tok_after(const struct toks *t, size_t i)
{
    return tok_next(t, i + 1);
}

size_t tok_before(const struct toks *t, size_t i)
{
    return i == 0 ? SIZE_MAX : tok_prev(t, i - 1);
}

size_t tok_end_of_directive(const struct toks *t, size_t i)
{
    while (i < t->n && t->v[i].directive)
        i++;
    return i;
}
