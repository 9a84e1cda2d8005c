/* tokenizer.h - byte-level BPE as Hugging Face's tokenizer.json describes it (Qwen, Llama 3, SmolLM2, GPT-2 layouts):
 * added tokens cut the raw text, NFC, pre-tokenizer regex from the file (PCRE2), bytes to ids by ranked merges.
 * Ids equal those of the 'tokenizers' library without what it puts around a text (add_special_tokens=False). What we do
 * not understand in the file is refused, never ignored.
 *
 * A tokenizer caches words and owns scratch memory: one thread uses one tokenizer at a time. */
#ifndef MC_NN_TOKENIZER_H
#define MC_NN_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct tokenizer;

/* path: a tokenizer.json, or a folder that holds one. NULL on error. */
struct tokenizer *tokenizer_load(const char *path, struct err *e);
struct tokenizer *tokenizer_parse(const char *json, size_t n, const char *what, struct err *e);
void tokenizer_free(struct tokenizer *t); /* NULL is fine */

enum tokenizer_mode {
    TOK_PLAIN,  /* all of the text is text: "<|im_end|>" in it becomes ordinary tokens. For foreign text. */
    TOK_MARKUP, /* added tokens that are not special (<think>, <tool_call>) are recognised; special ones are text */
    TOK_SPECIAL /* every added token is recognised: what HF's encode() does */
};

/* Appends the ids of text to out. Invalid UTF-8 is read as U+FFFD (WHATWG maximal subparts, as Python's 'replace').
 * Fails only when a byte has no token in the vocabulary or the regex gives up; out is then as it was. */
int tokenizer_encode(struct tokenizer *t, const char *text, size_t n, enum tokenizer_mode mode, struct ivec *out,
                     struct err *e);

/* Appends the bytes of the ids, which need not be valid UTF-8 (a token may end inside a character). Ids without a token
 * are skipped. With skip_special, special tokens are left out. */
void tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t n, bool skip_special, struct buf *out);
/* The same, with invalid UTF-8 replaced by U+FFFD: for people and graders; the ids stay the truth. */
char *tokenizer_text(const struct tokenizer *t, const int32_t *ids, size_t n, bool skip_special); /* caller frees */

int32_t tokenizer_size(const struct tokenizer *t);                    /* highest id + 1; a model may have more rows */
int32_t tokenizer_id(const struct tokenizer *t, const char *token);   /* as the file spells it; -1 when absent */
const char *tokenizer_token(const struct tokenizer *t, int32_t id);   /* as the file spells it; NULL when absent */
bool tokenizer_is_special(const struct tokenizer *t, int32_t id);
/* The bytes that an id stands for; NULL and 0 when absent. Borrowed. */
const char *tokenizer_bytes(const struct tokenizer *t, int32_t id, size_t *ret_n);

/* The folder's chat_template.jinja, or what tokenizer_config.json or chat_template.json says; NULL. Borrowed. */
const char *tokenizer_chat_template(const struct tokenizer *t);

/* 0, or an error when ids could fall outside a model with n_rows embedding rows. */
int tokenizer_check_rows(const struct tokenizer *t, int64_t n_rows, struct err *e);

#endif
