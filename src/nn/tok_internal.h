/* tok_internal.h - the parts of a tokenizer, shared by tok_*.c, tokenizer.c and bpe_train.c; nobody else includes it.
 *
 * Text flows: added tokens (tokenizer.c) -> NFC (tok_unicode.c) -> pieces (tok_split.c) -> ids (tok_bpe.c).
 * All text inside is valid UTF-8. */
#ifndef MC_NN_TOK_INTERNAL_H
#define MC_NN_TOK_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "nn/tokenizer.h"

/* ---- Unicode (tok_unicode.c) ---- */

bool utf8_valid(const char *s, size_t n);
uint32_t utf8_next(const char **s, const char *end);     /* s < end, valid UTF-8 */
uint32_t utf8_before(const char *begin, const char *s);  /* the character that ends at s; begin < s */
size_t utf8_put(uint32_t cp, char out[4]);
bool is_white_space(uint32_t cp); /* the Unicode property */
bool is_word(uint32_t cp);        /* \w of UTS 18: alphabetic, mark, decimal digit, connector, join control */
/* Canonical composition. Returns s itself when it is plainly stable, else scratch's text; *n changes with it. */
const char *nfc(const char *s, size_t *n, struct buf *scratch);
/* GPT-2's byte <-> character table: printable Latin-1 stands for itself, the rest for U+0100 and up. */
uint32_t byte_to_char(uint8_t b);
int char_to_byte(uint32_t cp); /* -1 outside the table */

/* ---- pieces (tok_split.c) ---- */

struct splitter; /* a list of stages; each cuts every piece that the one before it made */
typedef int piece_fn(void *ctx, const char *s, size_t n, struct err *e);

struct splitter *splitter_new(void);
void splitter_free(struct splitter *p);
/* regex: Oniguruma's dialect as in tokenizer.json; matches and the gaps between them are pieces ("Isolated"). */
int splitter_add_regex(struct splitter *p, const char *regex, struct err *e);
int splitter_add_literal(struct splitter *p, const char *text, struct err *e);
void splitter_add_prefix_space(struct splitter *p); /* ByteLevel's add_prefix_space */
int splitter_run(struct splitter *p, const char *s, size_t n, piece_fn *f, void *ctx, struct err *e);

extern const char qwen3_regex[], gpt2_regex[];

/* ---- ids (tok_bpe.c) ---- */

struct pair_slot {
    uint64_t key; /* left id << 32 | right id; PAIR_FREE when the slot is empty */
    int32_t rank, id;
};
#define PAIR_FREE UINT64_MAX

struct bpe_cache;

struct bpe {
    int32_t byte_id[256]; /* -1: the vocabulary lacks this byte */
    int32_t unk_id;       /* for such bytes; -1: they vanish, as in 'tokenizers' */
    bool fuse_unk;        /* a run of unknown bytes is one unk */
    struct pair_slot *pairs;
    size_t mask, n_pairs;
    struct bpe_cache *cache;
    void *scratch;
    size_t scratch_size;
};

void bpe_init(struct bpe *b, size_t n_merges);
void bpe_free(struct bpe *b);
void bpe_add_merge(struct bpe *b, int32_t left, int32_t right, int32_t rank, int32_t id); /* the last one wins */
void bpe_encode(struct bpe *b, const char *word, size_t n, struct ivec *out);

/* ---- the whole (tok_load.c fills it, tokenizer.c uses it) ---- */

struct token {
    const char *text;  /* as the file spells it; NULL: no such id */
    const char *bytes; /* what it stands for */
    uint32_t n_bytes;
    bool added, special;
};

struct added_token {
    const char *text;
    size_t n;
    int32_t id;
    bool special, single_word, lstrip, rstrip, normalized;
};

struct matcher { /* added tokens by first byte, longest first */
    struct added_token *v;
    size_t n;
    size_t first[257]; /* tokens that start with byte b: v[first[b]] .. v[first[b + 1]] */
};

struct tokenizer {
    struct arena arena;
    struct token *tokens;
    int32_t n_tokens; /* highest id + 1 */
    int32_t *by_text; /* open addressing: id or -1 */
    size_t by_text_mask;
    struct matcher raw, normalized;
    bool nfc, ignore_merges;
    struct splitter *split;
    struct bpe bpe;
    struct buf utf8, norm, spelled; /* scratch */
    char *chat_template;            /* of its folder; NULL */
};

int32_t token_find(const struct tokenizer *t, const char *text, size_t n);

#endif
