/* tokenizer.c - text to ids and back. The order is that of 'tokenizers': added tokens that are not 'normalized' cut
 * the raw text; each part is normalised; 'normalized' added tokens cut it again; the rest goes through the
 * pre-tokenizer to BPE. */
#include "nn/tokenizer.h"

#include <string.h>

#include "base/json.h"
#include "nn/tok_internal.h"

struct tokenizer_run {
    struct tokenizer *t;
    enum tokenizer_mode mode;
    struct ivec *out;
};

/* The longest added token that s begins with; NULL: none. */
static const struct added_token *tokenizer_match_at(const struct matcher *m, const char *s, size_t n)
{
    unsigned char b = (unsigned char)*s;

    for (size_t i = m->first[b]; i < m->first[b + 1]; i++)
        if (m->v[i].n <= n && !memcmp(m->v[i].text, s, m->v[i].n))
            return &m->v[i];
    return NULL;
}

static bool tokenizer_stands_alone(const char *begin, const char *end, const char *from, const char *to)
{
    const char *p = to;

    return (from == begin || !is_word(utf8_before(begin, from))) && (to == end || !is_word(utf8_next(&p, end)));
}

/* The end of [limit, s) without the white space before s. */
static const char *tokenizer_strip_left(const char *limit, const char *s)
{
    while (s > limit && is_white_space(utf8_before(limit, s)))
        do
            s--;
        while (s > limit && ((unsigned char)*s & 0xc0) == 0x80);
    return s;
}

/* The first place of [s, end) that is no white space. */
static const char *tokenizer_strip_right(const char *s, const char *end)
{
    const char *p = s;

    while (p < end && is_white_space(utf8_next(&p, end)))
        s = p;
    return s;
}

typedef int text_fn(struct tokenizer_run *r, const char *s, size_t n, struct err *e);

/* Cuts s at the added tokens of m; what lies between goes to f. */
static int tokenizer_cut(struct tokenizer_run *r, const struct matcher *m, const char *s, size_t n, text_fn *f,
                         struct err *e)
{
    const char *end = s + n, *begin = s, *done = s;

    if (r->mode == TOK_PLAIN || m->n == 0)
        return n ? f(r, s, n, e) : 0;
    while (s < end) {
        const struct added_token *a = tokenizer_match_at(m, s, (size_t)(end - s));
        const char *from = s, *to;
        if (!a) {
            s++;
            continue;
        }
        s = to = from + a->n;
        if (from < done || (r->mode == TOK_MARKUP && a->special) ||
            (a->single_word && !tokenizer_stands_alone(begin, end, from, to)))
            continue;
        if (a->lstrip)
            from = tokenizer_strip_left(done, from);
        if (a->rstrip)
            to = tokenizer_strip_right(to, end);
        if (from > done && f(r, done, (size_t)(from - done), e) < 0)
            return -1;
        ivec_push(r->out, a->id);
        done = to;
    }
    return done < end ? f(r, done, (size_t)(end - done), e) : 0;
}

/* Appends the token of a whole word, where the vocabulary has it. */
static bool tokenizer_whole_word(struct tokenizer_run *r, const char *s, size_t n)
{
    struct buf *b = &r->t->spelled;
    int32_t id;

    buf_clear(b);
    for (size_t i = 0; i < n; i++) {
        char c[4];
        buf_add(b, c, utf8_put(byte_to_char((uint8_t)s[i]), c));
    }
    id = token_find(r->t, b->p, b->n);
    if (id >= 0)
        ivec_push(r->out, id);
    return id >= 0;
}

/* A callback of the splitter: appends the ids of a piece. */
static int tokenizer_encode_piece(void *ctx, const char *s, size_t n, struct err *e)
{
    struct tokenizer_run *r = ctx;

    (void)e;
    if (!r->t->ignore_merges || !tokenizer_whole_word(r, s, n))
        bpe_encode(&r->t->bpe, s, n, r->out);
    return 0;
}

static int tokenizer_encode_words(struct tokenizer_run *r, const char *s, size_t n, struct err *e)
{
    return splitter_run(r->t->split, s, n, tokenizer_encode_piece, r, e);
}

static int tokenizer_encode_normalized(struct tokenizer_run *r, const char *s, size_t n, struct err *e)
{
    if (r->t->nfc)
        s = nfc(s, &n, &r->t->norm);
    return tokenizer_cut(r, &r->t->normalized, s, n, tokenizer_encode_words, e);
}

int tokenizer_encode(struct tokenizer *t, const char *text, size_t n, enum tokenizer_mode mode, struct ivec *out,
                     struct err *e)
{
    struct tokenizer_run r = {t, mode, out};
    size_t before = out->n;

    if (!utf8_valid(text, n)) {
        buf_clear(&t->utf8);
        utf8_sanitize(&t->utf8, text, n);
        text = t->utf8.p;
        n = t->utf8.n;
    }
    if (tokenizer_cut(&r, &t->raw, text, n, tokenizer_encode_normalized, e) == 0)
        return 0;
    out->n = before;
    return -1;
}

static const struct token *tokenizer_token_at(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->n_tokens && t->tokens[id].text ? &t->tokens[id] : NULL;
}

void tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t n, bool skip_special, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        const struct token *k = tokenizer_token_at(t, ids[i]);
        if (k && !(skip_special && k->special))
            buf_add(out, k->bytes, k->n_bytes);
    }
}

char *tokenizer_text(const struct tokenizer *t, const int32_t *ids, size_t n, bool skip_special)
{
    struct buf raw, clean;

    buf_init(&raw, SIZE_MAX / 2);
    buf_init(&clean, SIZE_MAX / 2);
    tokenizer_decode(t, ids, n, skip_special, &raw);
    utf8_sanitize(&clean, raw.p, raw.n);
    buf_free(&raw);
    return buf_detach(&clean);
}

int32_t tokenizer_size(const struct tokenizer *t)
{
    return t->n_tokens;
}

int32_t tokenizer_id(const struct tokenizer *t, const char *token)
{
    return token_find(t, token, strlen(token));
}

const char *tokenizer_token(const struct tokenizer *t, int32_t id)
{
    const struct token *k = tokenizer_token_at(t, id);

    return k ? k->text : NULL;
}

bool tokenizer_is_special(const struct tokenizer *t, int32_t id)
{
    const struct token *k = tokenizer_token_at(t, id);

    return k && k->special;
}

const char *tokenizer_bytes(const struct tokenizer *t, int32_t id, size_t *ret_n)
{
    const struct token *k = tokenizer_token_at(t, id);

    *ret_n = k ? k->n_bytes : 0;
    return k ? k->bytes : NULL;
}

const char *tokenizer_chat_template(const struct tokenizer *t) { return t->chat_template; }

int tokenizer_check_rows(const struct tokenizer *t, int64_t n_rows, struct err *e)
{
    if (t->n_tokens <= n_rows)
        return 0;
    return err_set(e, ERR_INPUT, "the tokenizer has %d tokens, but the model has only %lld embedding rows; "
                   "they do not belong together", (int)t->n_tokens, (long long)n_rows);
}
