/* bpe_train.c - see bpe_train.h. Texts -> counted words -> pair counts -> merges -> files.
 *
 * Each pair knows its count and the words it may be in. The heap holds (count, pair) as they were when pushed; an entry
 * whose count has fallen meanwhile is pushed again with the right one, so the top is always the true maximum. */
#include "nn/bpe_train.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "nn/chat.h"
#include "nn/tok_internal.h"

static const char *const specials[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
#define N_SPECIALS 3

struct word {
    int32_t *ids;
    uint32_t n;
    int64_t count;
    uint64_t hash;
};

struct bpe_train_pair {
    uint64_t key; /* left << 32 | right */
    int64_t count;
    uint32_t *words; /* may name a word twice, or one that lost the pair */
    uint32_t n_words, cap;
};

struct bpe_train_entry {
    int64_t count;
    uint64_t key;
};

struct trainer {
    const char *split; /* regex of the pieces */
    struct word *words;
    size_t n_words, cap_words, *word_slots, word_mask; /* slot: index + 1 */
    struct bpe_train_pair *pairs;
    size_t n_pairs, cap_pairs, *pair_slots, pair_mask;
    struct bpe_train_entry *heap;
    size_t n_heap, cap_heap;
    int32_t byte_id[256];
    char **tokens; /* id -> spelling */
    int n_tokens;
    json_t *merges;
    struct bpe_result stats;
};

/* ---- words ---- */

/* The word's slot, or the empty one where it would stand. */
static size_t *bpe_train_word_slot(struct trainer *t, const int32_t *ids, size_t n, uint64_t hash)
{
    size_t i = (size_t)hash & t->word_mask;

    for (; t->word_slots[i]; i = (i + 1) & t->word_mask) {
        const struct word *w = &t->words[t->word_slots[i] - 1];
        if (w->hash == hash && w->n == n && !memcmp(w->ids, ids, n * sizeof *ids))
            break;
    }
    return &t->word_slots[i];
}

/* Doubles the table of distinct words and hashes them anew. */
static void bpe_train_grow_words(struct trainer *t)
{
    free(t->word_slots);
    t->cap_words = t->cap_words ? 2 * t->cap_words : 4096;
    t->words = xrealloc(t->words, t->cap_words * sizeof *t->words);
    t->word_mask = 2 * t->cap_words - 1;
    t->word_slots = xcalloc(2 * t->cap_words, sizeof *t->word_slots);
    for (size_t i = 0; i < t->n_words; i++)
        *bpe_train_word_slot(t, t->words[i].ids, t->words[i].n, t->words[i].hash) = i + 1;
}

/* A callback of the splitter: counts a word of n bytes. */
static int bpe_train_count_word(void *ctx, const char *s, size_t n, struct err *e)
{
    struct trainer *t = ctx;
    int32_t *ids = xmalloc(n * sizeof *ids);
    uint64_t hash;
    size_t *slot;

    (void)e;
    for (size_t i = 0; i < n; i++)
        ids[i] = t->byte_id[(unsigned char)s[i]];
    hash = hash64(ids, n * sizeof *ids, 0);
    if (t->n_words == t->cap_words)
        bpe_train_grow_words(t);
    t->stats.n_words++;
    slot = bpe_train_word_slot(t, ids, n, hash);
    if (*slot) {
        t->words[*slot - 1].count++;
        free(ids);
        return 0;
    }
    t->words[t->n_words] = (struct word){ids, (uint32_t)n, 1, hash};
    *slot = ++t->n_words;
    return 0;
}

/* Splits all texts into words and counts them. lens: NULL for C strings. */
static int bpe_train_count_texts(struct trainer *t, const char *const *texts, const size_t *lens, size_t n_texts,
                                 struct err *e)
{
    struct splitter *split = splitter_new();
    struct buf clean, norm;
    int rc = splitter_add_regex(split, t->split, e);

    buf_init(&clean, SIZE_MAX / 2);
    buf_init(&norm, SIZE_MAX / 2);
    for (size_t i = 0; rc == 0 && i < n_texts; i++) {
        size_t n = lens ? lens[i] : strlen(texts[i]);
        const char *s;
        t->stats.n_bytes += n;
        buf_clear(&clean);
        utf8_sanitize(&clean, texts[i], n);
        n = clean.n;
        s = nfc(clean.p, &n, &norm);
        rc = splitter_run(split, s, n, bpe_train_count_word, t, e);
    }
    buf_free(&clean);
    buf_free(&norm);
    splitter_free(split);
    t->stats.n_distinct_words = t->n_words;
    return rc;
}

/* ---- pairs ---- */

/* A pair as one number. */
static uint64_t bpe_train_key_of(int32_t left, int32_t right)
{
    return (uint64_t)left << 32 | (uint32_t)right;
}

/* The pair's slot, or the empty one where it would stand. */
static size_t *bpe_train_pair_slot(struct trainer *t, uint64_t key)
{
    size_t i = (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & t->pair_mask;

    while (t->pair_slots[i] && t->pairs[t->pair_slots[i] - 1].key != key)
        i = (i + 1) & t->pair_mask;
    return &t->pair_slots[i];
}

/* The entry of a pair, made where it is new. It moves when another is made. */
static struct bpe_train_pair *bpe_train_pair_of(struct trainer *t, uint64_t key)
{
    size_t *slot;

    if (t->n_pairs == t->cap_pairs) {
        t->cap_pairs = t->cap_pairs ? 2 * t->cap_pairs : 4096;
        t->pairs = xrealloc(t->pairs, t->cap_pairs * sizeof *t->pairs);
        free(t->pair_slots);
        t->pair_mask = 2 * t->cap_pairs - 1;
        t->pair_slots = xcalloc(2 * t->cap_pairs, sizeof *t->pair_slots);
        for (size_t i = 0; i < t->n_pairs; i++)
            *bpe_train_pair_slot(t, t->pairs[i].key) = i + 1;
    }
    slot = bpe_train_pair_slot(t, key);
    if (!*slot) {
        t->pairs[t->n_pairs] = (struct bpe_train_pair){.key = key};
        *slot = ++t->n_pairs;
    }
    return &t->pairs[*slot - 1];
}

/* True if a is merged before b: more frequent, or of a lower key. */
static bool bpe_train_above(const struct bpe_train_entry *a, const struct bpe_train_entry *b)
{
    return a->count != b->count ? a->count > b->count : a->key < b->key;
}

/* Adds an entry to the heap, whose top is the most frequent pair. */
static void bpe_train_heap_push(struct trainer *t, struct bpe_train_entry x)
{
    size_t i = t->n_heap++;

    if (t->n_heap > t->cap_heap) {
        t->cap_heap = t->cap_heap ? 2 * t->cap_heap : 4096;
        t->heap = xrealloc(t->heap, t->cap_heap * sizeof *t->heap);
    }
    for (; i > 0 && bpe_train_above(&x, &t->heap[(i - 1) / 2]); i = (i - 1) / 2)
        t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = x;
}

/* The pair of the highest count. */
static struct bpe_train_entry bpe_train_heap_pop(struct trainer *t)
{
    struct bpe_train_entry top = t->heap[0], x = t->heap[--t->n_heap];
    size_t i = 0, k;

    for (; (k = 2 * i + 1) < t->n_heap; i = k) {
        if (k + 1 < t->n_heap && bpe_train_above(&t->heap[k + 1], &t->heap[k]))
            k++;
        if (!bpe_train_above(&t->heap[k], &x))
            break;
        t->heap[i] = t->heap[k];
    }
    t->heap[i] = x;
    return top;
}

/* Changes a pair's count by so many and notes the word in which it stands. */
static void bpe_train_pair_change(struct trainer *t, int32_t left, int32_t right, int64_t by, uint32_t word)
{
    struct bpe_train_pair *p = bpe_train_pair_of(t, bpe_train_key_of(left, right));

    p->count += by;
    if (by < 0 || (p->n_words && p->words[p->n_words - 1] == word))
        return;
    if (p->n_words == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 4;
        p->words = xrealloc(p->words, p->cap * sizeof *p->words);
    }
    p->words[p->n_words++] = word;
}

/* Counts the neighbouring tokens of all words. */
static void bpe_train_count_pairs(struct trainer *t)
{
    for (size_t k = 0; k < t->n_words; k++)
        for (uint32_t i = 0; i + 1 < t->words[k].n; i++)
            bpe_train_pair_change(t, t->words[k].ids[i], t->words[k].ids[i + 1], t->words[k].count, (uint32_t)k);
    for (size_t i = 0; i < t->n_pairs; i++)
        bpe_train_heap_push(t, (struct bpe_train_entry){t->pairs[i].count, t->pairs[i].key});
}

/* ---- merging ---- */

struct fresh { /* pairs that grew in this merge: they go to the heap once, with their final count */
    uint64_t *v;
    size_t n, cap;
};

/* Appends a pair that came into being by the last merge. */
static void bpe_train_fresh_add(struct fresh *f, int32_t left, int32_t right)
{
    if (f->n == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 64;
        f->v = xrealloc(f->v, f->cap * sizeof *f->v);
    }
    f->v[f->n++] = bpe_train_key_of(left, right);
}

/* Replaces (left, right) by id in word k and updates the counts of its neighbours. */
static void bpe_train_merge_in_word(struct trainer *t, uint32_t k, int32_t left, int32_t right, int32_t id,
                                    struct fresh *f)
{
    struct word *w = &t->words[k];
    uint32_t out = 0;

    for (uint32_t i = 0; i < w->n; i++) {
        if (i + 1 >= w->n || w->ids[i] != left || w->ids[i + 1] != right) {
            w->ids[out++] = w->ids[i];
            continue;
        }
        if (out > 0) {
            bpe_train_pair_change(t, w->ids[out - 1], left, -w->count, k);
            bpe_train_pair_change(t, w->ids[out - 1], id, w->count, k);
            bpe_train_fresh_add(f, w->ids[out - 1], id);
        }
        if (i + 2 < w->n) {
            bpe_train_pair_change(t, right, w->ids[i + 2], -w->count, k);
            bpe_train_pair_change(t, id, w->ids[i + 2], w->count, k);
            bpe_train_fresh_add(f, id, w->ids[i + 2]);
        }
        w->ids[out++] = id;
        i++;
    }
    w->n = out;
}

static int bpe_train_cmp_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Puts the pairs that a merge made into the heap, each once, in a fixed order. */
static void bpe_train_push_fresh(struct trainer *t, struct fresh *f)
{
    if (f->n)
        qsort(f->v, f->n, sizeof *f->v, bpe_train_cmp_keys);
    for (size_t i = 0; i < f->n; i++)
        if (i == 0 || f->v[i] != f->v[i - 1]) {
            const struct bpe_train_pair *p = bpe_train_pair_of(t, f->v[i]);
            if (p->count > 0)
                bpe_train_heap_push(t, (struct bpe_train_entry){p->count, p->key});
        }
    f->n = 0;
}

/* The id of left + right; an existing one when another merge already spelt the same token. */
static int32_t bpe_train_token_for(struct trainer *t, int32_t left, int32_t right, json_t *ids)
{
    char *text = xasprintf("%s%s", t->tokens[left], t->tokens[right]);
    json_t *known = json_object_get(ids, text);

    if (known) {
        free(text);
        return (int32_t)json_integer_value(known);
    }
    json_object_set_new(ids, text, json_integer(t->n_tokens));
    t->tokens[t->n_tokens] = text;
    return t->n_tokens++;
}

/* Merges a pair in all its words and records the merge. */
static void bpe_train_apply_merge(struct trainer *t, uint64_t key, json_t *ids, struct fresh *f)
{
    int32_t left = (int32_t)(key >> 32), right = (int32_t)(key & 0xffffffff),
        id = bpe_train_token_for(t, left, right, ids);
    struct bpe_train_pair *p = bpe_train_pair_of(t, key);
    uint32_t *words = p->words, n = p->n_words;
    char *text = xasprintf("%s %s", t->tokens[left], t->tokens[right]);

    json_array_append_new(t->merges, json_string(text));
    free(text);
    p->words = NULL;
    p->n_words = p->cap = 0;
    for (uint32_t i = 0; i < n; i++)
        bpe_train_merge_in_word(t, words[i], left, right, id, f);
    free(words);
    bpe_train_pair_of(t, key)->count = 0;
    bpe_train_push_fresh(t, f);
}

/* Merges the most frequent pair until the vocabulary is full or counts fall below min_count. */
static void bpe_train_merge_all(struct trainer *t, int vocab_size, int min_count)
{
    json_t *ids = json_object();
    struct fresh f = {0};

    for (int i = 0; i < 256; i++)
        json_object_set_new(ids, t->tokens[i], json_integer(i));
    while (t->n_tokens + N_SPECIALS < vocab_size && t->n_heap) {
        struct bpe_train_entry top = bpe_train_heap_pop(t);
        int64_t count = bpe_train_pair_of(t, top.key)->count;
        if (count < top.count) {
            if (count > 0)
                bpe_train_heap_push(t, (struct bpe_train_entry){count, top.key});
            continue;
        }
        if (count < min_count)
            break;
        bpe_train_apply_merge(t, top.key, ids, &f);
    }
    free(f.v);
    json_decref(ids);
    t->stats.n_merges = (int)json_array_size(t->merges);
    t->stats.vocab_size = t->n_tokens + N_SPECIALS;
}

/* ---- files ---- */

static json_t *bpe_train_byte_level(bool use_regex)
{
    return json_pack("{s:s,s:b,s:b,s:b}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 0, "use_regex",
                     (int)use_regex);
}

static json_t *bpe_train_added_token(const char *text)
{
    return json_pack("{s:s,s:b,s:b,s:b,s:b,s:b}", "content", text, "single_word", 0, "lstrip", 0, "rstrip", 0,
                     "normalized", 0, "special", 1);
}

/* tokenizer.json, new. */
static json_t *bpe_train_tokenizer_doc(const struct trainer *t)
{
    json_t *vocab = json_object(), *added = json_array();

    for (int i = 0; i < t->n_tokens; i++)
        json_object_set_new(vocab, t->tokens[i], json_integer(i));
    for (int i = 0; i < N_SPECIALS; i++) {
        json_t *a = json_pack("{s:i}", "id", t->n_tokens + i), *rest = bpe_train_added_token(specials[i]);
        json_object_update(a, rest);
        json_decref(rest);
        json_array_append_new(added, a);
    }
    return json_pack("{s:s,s:n,s:n,s:o,s:{s:s},s:{s:s,s:[{s:s,s:{s:s},s:s,s:b},o]},s:o,s:o,"
                     "s:{s:s,s:n,s:n,s:s,s:s,s:b,s:b,s:b,s:o,s:O}}",
                     "version", "1.0", "truncation", "padding", "added_tokens", added, "normalizer", "type", "NFC",
                     "pre_tokenizer", "type", "Sequence", "pretokenizers", "type", "Split", "pattern", "Regex",
                     t->split, "behavior", "Isolated", "invert", 0, bpe_train_byte_level(false), "post_processor",
                     bpe_train_byte_level(false), "decoder", bpe_train_byte_level(false), "model", "type", "BPE",
                     "dropout", "unk_token", "continuing_subword_prefix", "", "end_of_word_suffix", "", "fuse_unk", 0,
                     "byte_fallback", 0, "ignore_merges", 0, "vocab", vocab, "merges", t->merges);
}

/* tokenizer_config.json, new. */
static json_t *bpe_train_config_doc(const struct trainer *t)
{
    json_t *decoder = json_object();

    for (int i = 0; i < N_SPECIALS; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", t->n_tokens + i);
        json_object_set_new(decoder, id, bpe_train_added_token(specials[i]));
    }
    return json_pack("{s:b,s:b,s:o,s:[s,s],s:n,s:s,s:b,s:s,s:s,s:i,s:s,s:b,s:s,s:n}", "add_bos_token", 0,
                     "add_prefix_space", 0, "added_tokens_decoder", decoder, "additional_special_tokens", specials[1],
                     specials[2], "bos_token", "chat_template", chat_template_plain, "clean_up_tokenization_spaces", 0,
                     "eos_token", specials[2], "errors", "replace", "model_max_length", 131072, "pad_token",
                     specials[0], "split_special_tokens", 0, "tokenizer_class", "PreTrainedTokenizerFast", "unk_token");
}

/* Writes a document of the tokenizer; takes doc. */
static int bpe_train_write_doc(const char *dir, const char *name, json_t *doc, struct err *e)
{
    char *path = path_join(dir, name);
    int rc = doc ? json_write(path, doc, e) : err_set(e, ERR_BUG, "cannot build '%s'", name);

    free(path);
    json_decref(doc);
    return rc;
}

/* The first 256 tokens: every byte, as the byte-level alphabet spells it. */
static void bpe_train_init_alphabet(struct trainer *t)
{
    int id = 0;

    for (uint32_t cp = 0; cp < 256 + 68; cp++) {
        int b = char_to_byte(cp);
        char c[4];
        if (b < 0)
            continue;
        t->byte_id[b] = id;
        t->tokens[id++] = xstrndup(c, utf8_put(cp, c));
    }
    t->n_tokens = id;
}

/* Frees what the trainer holds. */
static void bpe_train_trainer_free(struct trainer *t)
{
    for (size_t i = 0; i < t->n_words; i++)
        free(t->words[i].ids);
    for (size_t i = 0; i < t->n_pairs; i++)
        free(t->pairs[i].words);
    for (int i = 0; i < t->n_tokens; i++)
        free(t->tokens[i]);
    free(t->words);
    free(t->word_slots);
    free(t->pairs);
    free(t->pair_slots);
    free(t->heap);
    free(t->tokens);
    json_decref(t->merges);
}

int bpe_train(const char *const *texts, const size_t *lens, size_t n_texts, const struct bpe_options *o,
              const char *dir, struct bpe_result *ret, struct err *e)
{
    struct trainer t = {.split = o->split ? o->split : qwen3_regex};
    int rc;

    if (o->vocab_size < 256 + N_SPECIALS || o->vocab_size > 1000000)
        return err_set(e, ERR_INPUT, "a vocabulary of %d tokens is not possible; 259 to 1000000 are", o->vocab_size);
    t.tokens = xcalloc((size_t)o->vocab_size + 1, sizeof *t.tokens);
    t.merges = json_array();
    bpe_train_init_alphabet(&t);
    rc = bpe_train_count_texts(&t, texts, lens, n_texts, e);
    if (rc == 0) {
        bpe_train_count_pairs(&t);
        bpe_train_merge_all(&t, o->vocab_size, o->min_count > 0 ? o->min_count : 2);
        rc = dir_make(dir, e);
    }
    if (rc == 0 && (bpe_train_write_doc(dir, "tokenizer.json", bpe_train_tokenizer_doc(&t), e) < 0 ||
                    bpe_train_write_doc(dir, "tokenizer_config.json", bpe_train_config_doc(&t), e) < 0))
        rc = -1;
    if (rc == 0 && ret)
        *ret = t.stats;
    bpe_train_trainer_free(&t);
    return rc;
}
