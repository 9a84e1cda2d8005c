/* tok_load.c - reads tokenizer.json into a struct tokenizer. Each section of the file has one function; a type or a
 * flag that we do not implement is refused, because ignoring it would give other ids than 'tokenizers' gives. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "nn/tok_internal.h"

#define ID_MAX 4000000

static int tok_load_refuse(struct err *e, const char *what, const char *type)
{
    return err_set(e, ERR_INPUT, "tokenizer.json: %s '%.80s' is not supported; the byte-level layouts of Qwen, "
                                 "Llama 3, SmolLM2 and GPT-2 are", what,
                   type ? type : "(no type)");
}

static bool tok_load_is_set(const json_t *obj, const char *key) /* present and not null, "" or false */
{
    const json_t *v = json_object_get(obj, key);

    return v && !json_is_null(v) && !json_is_false(v) && !(json_is_string(v) && json_string_length(v) == 0);
}

/* ---- tokens by id and by text ---- */

/* The slot of a token's text in by_text: its own, or the free one where it belongs. */
static size_t tok_load_text_slot(const struct tokenizer *t, const char *text, size_t n)
{
    size_t i = (size_t)hash64(text, n, 1) & t->by_text_mask;

    while (t->by_text[i] >= 0) {
        const char *s = t->tokens[t->by_text[i]].text;
        if (strlen(s) == n && !memcmp(s, text, n))
            break;
        i = (i + 1) & t->by_text_mask;
    }
    return i;
}

int32_t token_find(const struct tokenizer *t, const char *text, size_t n)
{
    return t->by_text ? t->by_text[tok_load_text_slot(t, text, n)] : -1;
}

/* Bytes of a vocabulary entry: each character maps back to its byte; with a foreign one, the text stands for itself. */
static void tok_load_set_bytes(struct tokenizer *t, struct token *k)
{
    const char *s = k->text, *end = s + strlen(s);
    char *out = arena_alloc(&t->arena, (size_t)(end - s) + 1);
    uint32_t n = 0;

    k->bytes = out;
    while (s < end) {
        int b = char_to_byte(utf8_next(&s, end));
        if (b < 0) {
            k->bytes = k->text;
            k->n_bytes = (uint32_t)strlen(k->text);
            return;
        }
        out[n++] = (char)b;
    }
    k->n_bytes = n;
}

/* Enters a token of the vocabulary. ERR_INPUT: its id is taken, or its text stands twice. */
static int tok_load_add_vocab_token(struct tokenizer *t, const char *text, int32_t id, struct err *e)
{
    struct token *k = &t->tokens[id];

    if (k->text)
        return err_set(e, ERR_INPUT, "tokenizer.json: '%.80s' and '%.80s' have the same id %d", k->text, text, (int)id);
    k->text = arena_strdup(&t->arena, text);
    tok_load_set_bytes(t, k);
    t->by_text[tok_load_text_slot(t, text, strlen(text))] = id;
    return 0;
}

/* 0 for an id within the limits (max grows with it), else ERR_INPUT. */
static int tok_load_check_id(const json_t *v, const char *text, json_int_t *max, struct err *e)
{
    json_int_t id = json_integer_value(v);

    if (!json_is_integer(v) || id < 0 || id > ID_MAX)
        return err_set(e, ERR_INPUT, "tokenizer.json: token '%.80s' has no valid id", text);
    if (id > *max)
        *max = id;
    return 0;
}

/* Reads the vocabulary. ERR_INPUT: an id is no whole number, or stands twice. */
static int tok_load_vocab(struct tokenizer *t, const json_t *vocab, const json_t *added, struct err *e)
{
    json_int_t max = -1;
    size_t slots = 64, i;
    const char *text;
    json_t *v;

    json_object_foreach((json_t *)vocab, text, v)
        if (tok_load_check_id(v, text, &max, e) < 0)
            return -1;
    json_array_foreach((json_t *)added, i, v)
        if (tok_load_check_id(json_object_get(v, "id"), json_str(v, "content", "(none)"), &max, e) < 0)
            return -1;
    if (max < 0)
        return err_set(e, ERR_INPUT, "tokenizer.json has no tokens");
    t->n_tokens = (int32_t)max + 1;
    t->tokens = xcalloc((size_t)t->n_tokens, sizeof *t->tokens);
    while (slots < 2 * (json_object_size(vocab) + json_array_size(added)))
        slots *= 2;
    t->by_text_mask = slots - 1;
    t->by_text = xmalloc(slots * sizeof *t->by_text);
    memset(t->by_text, 0xff, slots * sizeof *t->by_text);
    json_object_foreach((json_t *)vocab, text, v)
        if (tok_load_add_vocab_token(t, text, (int32_t)json_integer_value(v), e) < 0)
            return -1;
    return 0;
}

/* ---- added tokens ---- */

/* qsort: by first byte, longer ones first. */
static int tok_load_by_first_byte(const void *a, const void *b)
{
    const struct added_token *x = a, *y = b;
    unsigned char p = (unsigned char)x->text[0], q = (unsigned char)y->text[0];

    if (p != q)
        return p < q ? -1 : 1;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return strcmp(x->text, y->text);
}

static void tok_load_matcher_add(struct matcher *m, struct added_token a)
{
    m->v = xrealloc(m->v, (m->n + 1) * sizeof *m->v);
    m->v[m->n++] = a;
}

/* Sorts the added tokens and notes where each first byte begins. */
static void tok_load_matcher_finish(struct matcher *m)
{
    size_t k = 0;

    if (m->n)
        qsort(m->v, m->n, sizeof *m->v, tok_load_by_first_byte);
    for (int b = 0; b <= 256; b++) {
        while (k < m->n && (unsigned char)m->v[k].text[0] < b)
            k++;
        m->first[b] = k;
    }
}

/* Adds a token that is found in the text before it is split. */
static int load_added_token(struct tokenizer *t, const json_t *v, struct err *e)
{
    const char *text = json_str(v, "content", NULL);
    int32_t id = (int32_t)json_integer_value(json_object_get(v, "id")), known;
    struct token *k = &t->tokens[id];
    struct added_token a = {NULL, 0, id, json_flag(v, "special", false), json_flag(v, "single_word", false),
                            json_flag(v, "lstrip", false), json_flag(v, "rstrip", false),
                            json_flag(v, "normalized", true)};
    size_t n;

    if (!text)
        return err_set(e, ERR_INPUT, "tokenizer.json: added token %d has no content", (int)id);
    known = token_find(t, text, strlen(text));
    if (known >= 0 && known != id)
        return err_set(e, ERR_INPUT, "tokenizer.json: token '%.80s' has two ids, %d and %d", text, (int)known, (int)id);
    if (k->text && strcmp(k->text, text))
        return err_set(e, ERR_INPUT, "tokenizer.json: '%.80s' and '%.80s' have the same id %d", k->text, text, (int)id);
    if (!*text || k->added)
        return 0;
    if (!k->text && tok_load_add_vocab_token(t, text, id, e) < 0)
        return -1;
    k->bytes = k->text;
    k->n_bytes = (uint32_t)strlen(k->text);
    k->added = true;
    k->special = a.special;
    n = k->n_bytes;
    a.text = k->text;
    if (a.normalized && t->nfc)
        a.text = arena_strdup(&t->arena, nfc(k->text, &n, &t->norm));
    a.n = n;
    tok_load_matcher_add(a.normalized ? &t->normalized : &t->raw, a);
    return 0;
}

/* Reads the added tokens and prepares their two matchers. */
static int tok_load_added(struct tokenizer *t, const json_t *added, struct err *e)
{
    size_t i;
    json_t *v;

    json_array_foreach((json_t *)added, i, v)
        if (load_added_token(t, v, e) < 0)
            return -1;
    tok_load_matcher_finish(&t->raw);
    tok_load_matcher_finish(&t->normalized);
    return 0;
}

/* ---- model ---- */

/* Both parts of a merge, in either notation. -1: it is no pair. */
static int tok_load_merge_parts(const json_t *m, const char **left, size_t *n_left, const char **right)
{
    const char *s = json_string_value(m), *space;

    if (s) { /* "left right"; a part never contains a space: the byte alphabet has none */
        space = strchr(s, ' ');
        if (!space || strchr(space + 1, ' '))
            return -1;
        *left = s;
        *n_left = (size_t)(space - s);
        *right = space + 1;
        return 0;
    }
    *left = json_string_value(json_array_get(m, 0));
    *right = json_string_value(json_array_get(m, 1));
    if (json_array_size(m) != 2 || !*left || !*right)
        return -1;
    *n_left = strlen(*left);
    return 0;
}

/* Adds the merge of that rank. ERR_INPUT: one of its tokens is unknown. */
static int tok_load_merge(struct tokenizer *t, const json_t *m, int32_t rank, struct err *e)
{
    const char *left, *right;
    size_t n;
    int32_t a, b, id;

    if (tok_load_merge_parts(m, &left, &n, &right) < 0)
        return err_set(e, ERR_INPUT, "tokenizer.json: merge %d is not a pair of tokens", (int)rank);
    a = token_find(t, left, n);
    b = token_find(t, right, strlen(right));
    buf_clear(&t->spelled);
    buf_add(&t->spelled, left, n);
    buf_adds(&t->spelled, right);
    id = token_find(t, t->spelled.p, t->spelled.n);
    if (a < 0 || b < 0 || id < 0)
        return err_set(e, ERR_INPUT, "tokenizer.json: merge %d makes '%.80s', which is not all in the vocabulary",
                       (int)rank, t->spelled.p);
    bpe_add_merge(&t->bpe, a, b, rank, id);
    return 0;
}

/* ERR_INPUT for a model that is not BPE, or with options that are not supported. */
static int tok_load_check_model_flags(const json_t *model, struct err *e)
{
    static const char *const off[] = {"continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"};
    const char *type = json_str(model, "type", "BPE");

    if (strcmp(type, "BPE"))
        return tok_load_refuse(e, "model", type);
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        if (tok_load_is_set(model, off[i]))
            return tok_load_refuse(e, "model option", off[i]);
    if (json_f64(model, "dropout", 0) != 0)
        return tok_load_refuse(e, "model option", "dropout");
    return 0;
}

/* Bytes of text that somebody writes: not control characters, not what UTF-8 never has, and not the first bytes of
 * planes 4 to 11, where no character is. */
static bool tok_load_occurs(int b)
{
    if (b < 0x20)
        return b == '\t' || b == '\n' || b == '\r';
    return b != 0x7f && b != 0xc0 && b != 0xc1 && b != 0xf1 && b != 0xf2 && b < 0xf5;
}

/* Finds the token of each byte; without one there must be an unknown token. */
static int tok_load_bytes(struct tokenizer *t, const json_t *model, struct err *e)
{
    const char *unk = json_str(model, "unk_token", "");
    int missing = 0, missed = 0; /* the second: of text */

    for (int b = 0; b < 256; b++) {
        char c[4];
        t->bpe.byte_id[b] = token_find(t, c, utf8_put(byte_to_char((uint8_t)b), c));
        missing += t->bpe.byte_id[b] < 0;
        missed += t->bpe.byte_id[b] < 0 && tok_load_occurs(b);
    }
    t->bpe.fuse_unk = json_flag(model, "fuse_unk", false);
    if (*unk && (t->bpe.unk_id = token_find(t, unk, strlen(unk))) < 0)
        return err_set(e, ERR_INPUT, "tokenizer.json: unk_token '%.80s' is not in the vocabulary", unk);
    if (missing == 256)
        return err_set(e, ERR_INPUT, "tokenizer.json: the vocabulary is not byte-level; it has none of the 256 bytes");
    if (missed && t->bpe.unk_id < 0)
        log_warn("tokenizer.json lacks bytes of text: %d; they vanish when it is encoded", missed);
    return 0;
}

/* Fills t's vocabulary and merges from tokenizer.json's "model". ERR_INPUT names what is no BPE model. */
static int tok_load_model(struct tokenizer *t, const json_t *model, const json_t *added, struct err *e)
{
    json_t *vocab = json_object_get(model, "vocab"), *merges = json_object_get(model, "merges"), *m;
    size_t i;

    if (!json_is_object(model) || !json_is_object(vocab) || !json_is_array(merges))
        return err_set(e, ERR_INPUT, "tokenizer.json has no 'model' with 'vocab' and 'merges'; is it a BPE tokenizer?");
    if (tok_load_check_model_flags(model, e) < 0 || tok_load_vocab(t, vocab, added, e) < 0)
        return -1;
    t->ignore_merges = json_flag(model, "ignore_merges", false);
    bpe_init(&t->bpe, json_array_size(merges));
    json_array_foreach(merges, i, m)
        if (tok_load_merge(t, m, (int32_t)i, e) < 0)
            return -1;
    return tok_load_bytes(t, model, e);
}

/* ---- normalizer, pre-tokenizer, decoder, post-processor ---- */

/* Reads the normalizer: none, NFC, or a sequence of such. */
static int load_normalizer(struct tokenizer *t, const json_t *v, struct err *e)
{
    const char *type = json_str(v, "type", NULL);
    json_t *list = json_object_get(v, "normalizers"), *item;
    size_t i;

    if (!v || json_is_null(v))
        return 0;
    if (type && !strcmp(type, "NFC")) {
        t->nfc = true;
        return 0;
    }
    if (!type || strcmp(type, "Sequence") || !json_is_array(list))
        return tok_load_refuse(e, "normalizer", type);
    json_array_foreach(list, i, item)
        if (load_normalizer(t, item, e) < 0)
            return -1;
    return 0;
}

/* Adds a splitting stage by a regex or a text. */
static int tok_load_split(struct tokenizer *t, const json_t *v, struct err *e)
{
    const char *behavior = json_str(v, "behavior", NULL), *regex, *literal;
    json_t *pattern = json_object_get(v, "pattern");

    if (!behavior || strcmp(behavior, "Isolated"))
        return tok_load_refuse(e, "pre-tokenizer behavior", behavior);
    regex = json_str(pattern, "Regex", NULL);
    literal = json_str(pattern, "String", NULL);
    if (regex)
        return splitter_add_regex(t->split, regex, e);
    if (literal && *literal)
        return splitter_add_literal(t->split, literal, e);
    return tok_load_refuse(e, "pre-tokenizer pattern", "neither Regex nor String");
}

static int load_byte_level(struct tokenizer *t, const json_t *v, struct err *e)
{
    if (json_flag(v, "add_prefix_space", true))
        splitter_add_prefix_space(t->split);
    return json_flag(v, "use_regex", true) ? splitter_add_regex(t->split, gpt2_regex, e) : 0;
}

/* Numbers apart from the rest: each digit a piece, or each run of them. */
static int tok_load_digits(struct tokenizer *t, const json_t *v, struct err *e)
{
    return splitter_add_regex(t->split, json_flag(v, "individual_digits", false) ? "\\p{N}" : "\\p{N}+", e);
}

/* Adds the stages of the pre-tokenizer; *byte_level becomes true where it ends in one. */
static int load_pre_tokenizer(struct tokenizer *t, const json_t *v, bool *byte_level, struct err *e)
{
    const char *type = json_str(v, "type", NULL);
    json_t *list = json_object_get(v, "pretokenizers"), *item;
    size_t i;

    if (type && *byte_level)
        return tok_load_refuse(e, "a pre-tokenizer behind ByteLevel,", type);
    if (type && !strcmp(type, "Split"))
        return tok_load_split(t, v, e);
    if (type && !strcmp(type, "Digits"))
        return tok_load_digits(t, v, e);
    if (type && !strcmp(type, "ByteLevel")) {
        *byte_level = true;
        return load_byte_level(t, v, e);
    }
    if (!type || strcmp(type, "Sequence") || !json_is_array(list))
        return tok_load_refuse(e, "pre-tokenizer", type);
    json_array_foreach(list, i, item)
        if (load_pre_tokenizer(t, item, byte_level, e) < 0)
            return -1;
    return 0;
}

/* ERR_INPUT for a post-processor that would change tokens. */
static int tok_load_check_post_processor(const json_t *v, struct err *e)
{
    const char *type = json_str(v, "type", NULL);
    json_t *list = json_object_get(v, "processors"), *item;
    size_t i;

    /* ByteLevel changes offsets only; TemplateProcessing puts ids around a text, and dialogues are parts of one */
    if (!v || json_is_null(v) || (type && (!strcmp(type, "ByteLevel") || !strcmp(type, "TemplateProcessing"))))
        return 0;
    if (!type || strcmp(type, "Sequence") || !json_is_array(list))
        return tok_load_refuse(e, "post-processor", type);
    json_array_foreach(list, i, item)
        if (tok_load_check_post_processor(item, e) < 0)
            return -1;
    return 0;
}

static int tok_load_check_decoder(const json_t *v, struct err *e)
{
    const char *type = json_str(v, "type", NULL);

    return !v || json_is_null(v) || (type && !strcmp(type, "ByteLevel")) ? 0 : tok_load_refuse(e, "decoder", type);
}

/* Reads tokenizer.json into t. */
static int load_document(struct tokenizer *t, const json_t *doc, struct err *e)
{
    json_t *added = json_object_get(doc, "added_tokens");
    bool byte_level = false;

    if (!json_is_object(doc))
        return err_set(e, ERR_INPUT, "tokenizer.json is not a JSON object");
    if (load_normalizer(t, json_object_get(doc, "normalizer"), e) < 0 ||
        tok_load_model(t, json_object_get(doc, "model"), added, e) < 0 || tok_load_added(t, added, e) < 0 ||
        load_pre_tokenizer(t, json_object_get(doc, "pre_tokenizer"), &byte_level, e) < 0)
        return -1;
    if (!byte_level)
        return tok_load_refuse(e, "pre-tokenizer", "without ByteLevel");
    return tok_load_check_decoder(json_object_get(doc, "decoder"), e) < 0 ? -1
                                                                 : tok_load_check_post_processor(
                                                                     json_object_get(doc, "post_processor"), e);
}

/* A tokenizer of a document, which is taken; NULL with e. what: a name for messages. */
static struct tokenizer *tok_load_from_json(json_t *doc, const char *what, struct err *e)
{
    struct tokenizer *t;

    if (!doc)
        return NULL;
    t = xcalloc(1, sizeof *t);
    buf_init(&t->utf8, SIZE_MAX / 2);
    buf_init(&t->norm, SIZE_MAX / 2);
    buf_init(&t->spelled, SIZE_MAX / 2);
    t->split = splitter_new();
    if (load_document(t, doc, e) < 0) {
        err_prefix(e, "'%s'", what);
        tokenizer_free(t);
        t = NULL;
    }
    json_decref(doc);
    return t;
}

struct tokenizer *tokenizer_parse(const char *json, size_t n, const char *what, struct err *e)
{
    return tok_load_from_json(json_parse(json, n, what, e), what, e);
}

/* Takes the chat template of a tokenizer_config.json, if it has one. */
static int tok_load_template_in_json(struct tokenizer *t, const char *file, struct err *e)
{
    json_t *o = json_read_foreign(file, e);
    const char *text = json_str(o, "chat_template", NULL);

    if (text)
        t->chat_template = xstrdup(text);
    json_decref(o);
    return o ? 0 : -1;
}

/* Where Transformers looks, in its order. */
static int load_template(struct tokenizer *t, const char *dir, struct err *e)
{
    static const char *const names[] = {"chat_template.jinja", "chat_template.json", "tokenizer_config.json"};
    struct buf text;
    int rc = 0;

    buf_init(&text, BUF_MAX_TEXT);
    for (size_t i = 0; i < sizeof names / sizeof *names && rc == 0 && !t->chat_template; i++) {
        char *file = path_join(dir, names[i]);
        if (file_exists(file) && i > 0)
            rc = tok_load_template_in_json(t, file, e);
        else if (file_exists(file) && (rc = file_read(file, &text, e)) == 0)
            t->chat_template = xstrdup(text.p);
        free(file);
    }
    buf_free(&text);
    return rc;
}

struct tokenizer *tokenizer_load(const char *path, struct err *e)
{
    char *file = file_is_dir(path) ? path_join(path, "tokenizer.json") : xstrdup(path);
    struct tokenizer *t = tok_load_from_json(json_read(file, e), file, e);

    free(file);
    if (t && file_is_dir(path) && load_template(t, path, e) < 0) {
        tokenizer_free(t);
        t = NULL;
    }
    return t;
}

void tokenizer_free(struct tokenizer *t)
{
    if (!t)
        return;
    splitter_free(t->split);
    bpe_free(&t->bpe);
    free(t->raw.v);
    free(t->normalized.v);
    free(t->tokens);
    free(t->by_text);
    buf_free(&t->utf8);
    buf_free(&t->norm);
    buf_free(&t->spelled);
    free(t->chat_template);
    arena_free(&t->arena);
    free(t);
}
