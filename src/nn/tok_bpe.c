/* tok_bpe.c - one piece of text to ids: repeatedly merge the adjacent pair of lowest rank, leftmost first.
 *
 * Short pieces scan for the best pair; long ones (a megabyte of spaces is one piece) keep pairs in a heap over a linked
 * list, n log n. Pieces repeat a lot, so the ids of short ones are cached; a full cache is emptied. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "nn/tok_internal.h"

#define SHORT_WORD 40
#define CACHE_SLOTS (1u << 16)
#define CACHE_BYTES (4u << 20)
#define NO_RANK INT32_MAX

struct cache_slot {
    uint64_t hash; /* 0: empty */
    uint32_t at;   /* of the bytes, then (aligned) the ids, in data */
    uint16_t n_bytes, n_ids;
};

struct bpe_cache {
    struct cache_slot *slots;
    char *data;
    size_t used, n_slots;
};

static size_t tok_bpe_pair_hash(uint64_t key)
{
    key *= 0x9e3779b97f4a7c15u;
    return (size_t)(key ^ key >> 29);
}

static uint64_t tok_bpe_pair_key(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* The pair's slot, or the free one where it would stand. */
static struct pair_slot *tok_bpe_pair_at(const struct bpe *b, uint64_t key)
{
    size_t i = tok_bpe_pair_hash(key) & b->mask;

    while (b->pairs[i].key != key && b->pairs[i].key != PAIR_FREE)
        i = (i + 1) & b->mask;
    return &b->pairs[i];
}

void bpe_init(struct bpe *b, size_t n_merges)
{
    size_t slots = 64;

    memset(b, 0, sizeof *b);
    while (slots < 2 * n_merges)
        slots *= 2;
    b->pairs = xmalloc(slots * sizeof *b->pairs);
    memset(b->pairs, 0xff, slots * sizeof *b->pairs); /* PAIR_FREE */
    b->mask = slots - 1;
    b->unk_id = -1;
    for (int i = 0; i < 256; i++)
        b->byte_id[i] = -1;
}

void bpe_free(struct bpe *b)
{
    if (b->cache) {
        free(b->cache->slots);
        free(b->cache->data);
    }
    free(b->cache);
    free(b->pairs);
    free(b->scratch);
    memset(b, 0, sizeof *b);
}

void bpe_add_merge(struct bpe *b, int32_t left, int32_t right, int32_t rank, int32_t id)
{
    struct pair_slot *p = tok_bpe_pair_at(b, tok_bpe_pair_key(left, right));

    b->n_pairs += p->key == PAIR_FREE;
    *p = (struct pair_slot){tok_bpe_pair_key(left, right), rank, id};
}

/* The ids of a word's bytes; returns how many. Unknown ones are left out or become the unknown token. */
static size_t tok_bpe_bytes_to_ids(const struct bpe *b, const char *word, size_t n, int32_t *ids)
{
    size_t k = 0;
    bool was_unk = false;

    for (size_t i = 0; i < n; i++) {
        int32_t id = b->byte_id[(unsigned char)word[i]];
        bool unk = id < 0;
        if (unk && (b->unk_id < 0 || (was_unk && b->fuse_unk)))
            continue;
        ids[k++] = unk ? b->unk_id : id;
        was_unk = unk;
    }
    return k;
}

/* The merge's rank, and its token in *ret_id; NO_RANK where there is none. */
static int32_t tok_bpe_pair_rank(const struct bpe *b, int32_t left, int32_t right, int32_t *ret_id)
{
    const struct pair_slot *p = tok_bpe_pair_at(b, tok_bpe_pair_key(left, right));

    if (p->key == PAIR_FREE)
        return NO_RANK;
    *ret_id = p->id;
    return p->rank;
}

/* ids, ranks, merged: n entries; entry i of the last two is about the pair (i, i + 1). Returns the ids left. */
static size_t tok_bpe_merge_short(const struct bpe *b, int32_t *ids, int32_t *ranks, int32_t *merged, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        ranks[i] = tok_bpe_pair_rank(b, ids[i], ids[i + 1], &merged[i]);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (ranks[i] < ranks[best])
                best = i;
        if (ranks[best] == NO_RANK)
            break;
        ids[best] = merged[best];
        memmove(ids + best + 1, ids + best + 2, (n - best - 2) * sizeof *ids);
        memmove(ranks + best, ranks + best + 1, (n - best - 2) * sizeof *ranks);
        memmove(merged + best, merged + best + 1, (n - best - 2) * sizeof *merged);
        n--;
        if (best + 1 < n)
            ranks[best] = tok_bpe_pair_rank(b, ids[best], ids[best + 1], &merged[best]);
        if (best > 0)
            ranks[best - 1] = tok_bpe_pair_rank(b, ids[best - 1], ids[best], &merged[best - 1]);
    }
    return n;
}

/* ---- long pieces ---- */

struct node {
    int32_t id; /* -1: merged into the node before */
    int32_t prev, next;
};

struct cand {
    int32_t rank, at, left, right; /* stale when the nodes at 'at' and behind it are not (left, right) any more */
};

struct heap {
    struct cand *v;
    size_t n;
};

/* True if a is merged before b. */
static bool tok_bpe_before(const struct cand *a, const struct cand *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

/* Restores the heap below entry i. */
static void tok_bpe_sift_down(struct heap *h, size_t i)
{
    struct cand x = h->v[i];

    for (;;) {
        size_t k = 2 * i + 1;
        if (k >= h->n)
            break;
        if (k + 1 < h->n && tok_bpe_before(&h->v[k + 1], &h->v[k]))
            k++;
        if (!tok_bpe_before(&h->v[k], &x))
            break;
        h->v[i] = h->v[k];
        i = k;
    }
    h->v[i] = x;
}

/* Adds a candidate merge to the heap, whose top is merged next. */
static void tok_bpe_heap_push(struct heap *h, struct cand x)
{
    size_t i = h->n++;

    while (i > 0 && tok_bpe_before(&x, &h->v[(i - 1) / 2])) {
        h->v[i] = h->v[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->v[i] = x;
}

/* Takes the merge that is next. */
static struct cand tok_bpe_heap_pop(struct heap *h)
{
    struct cand top = h->v[0];

    h->v[0] = h->v[--h->n];
    if (h->n)
        tok_bpe_sift_down(h, 0);
    return top;
}

/* Fills *ret with the merge of node 'at' and the next one. False: there is none. */
static bool tok_bpe_make_cand(const struct bpe *b, const struct node *v, int32_t at, struct cand *ret)
{
    int32_t id, rank;

    if (at < 0 || v[at].next < 0)
        return false;
    rank = tok_bpe_pair_rank(b, v[at].id, v[v[at].next].id, &id);
    if (rank == NO_RANK)
        return false;
    *ret = (struct cand){rank, at, v[at].id, v[v[at].next].id};
    return true;
}

/* Merges a node with the next one. */
static void tok_bpe_merge_node(const struct bpe *b, struct node *v, const struct cand *c)
{
    int32_t next = v[c->at].next, id = -1;

    tok_bpe_pair_rank(b, c->left, c->right, &id);
    v[c->at].id = id;
    v[c->at].next = v[next].next;
    if (v[next].next >= 0)
        v[v[next].next].prev = c->at;
    v[next].id = -1;
}

/* v: n nodes. cands: room for 3 n (n at the start, and each of n - 1 merges adds at most two). */
static void tok_bpe_merge_long(const struct bpe *b, struct node *v, struct cand *cands, size_t n)
{
    struct heap h = {cands, 0};
    struct cand c, fresh;

    for (size_t i = 0; i < n; i++)
        if (tok_bpe_make_cand(b, v, (int32_t)i, &c))
            h.v[h.n++] = c;
    for (size_t i = h.n / 2; i-- > 0;)
        tok_bpe_sift_down(&h, i);
    while (h.n) {
        c = tok_bpe_heap_pop(&h);
        if (v[c.at].id != c.left || v[c.at].next < 0 || v[v[c.at].next].id != c.right)
            continue;
        tok_bpe_merge_node(b, v, &c);
        if (tok_bpe_make_cand(b, v, c.at, &fresh))
            tok_bpe_heap_push(&h, fresh);
        if (tok_bpe_make_cand(b, v, v[c.at].prev, &fresh))
            tok_bpe_heap_push(&h, fresh);
    }
}

/* Memory of at least that size, valid until the next call. */
static void *tok_bpe_scratch(struct bpe *b, size_t size)
{
    if (size > b->scratch_size) {
        free(b->scratch);
        b->scratch = xmalloc(size);
        b->scratch_size = size;
    }
    return b->scratch;
}

#define LONG_MAX_BYTES ((size_t)1 << 30) /* node indices are int32 */

/* Appends a word's tokens; O(n log n), for words of any length. */
static void tok_bpe_encode_long(struct bpe *b, const char *word, size_t n, struct ivec *out)
{
    struct node *v;
    struct cand *cands;
    int32_t *ids;
    char *mem;
    size_t k;

    mem = tok_bpe_scratch(b, n * (sizeof *v + 3 * sizeof *cands));
    cands = (struct cand *)mem;
    v = (struct node *)(mem + 3 * n * sizeof *cands);
    ids = (int32_t *)cands; /* read before the heap is built */
    k = tok_bpe_bytes_to_ids(b, word, n, ids);
    for (size_t i = 0; i < k; i++)
        v[i] = (struct node){ids[i], (int32_t)i - 1, i + 1 < k ? (int32_t)i + 1 : -1};
    tok_bpe_merge_long(b, v, cands, k);
    for (size_t i = 0; i < k; i++)
        if (v[i].id >= 0)
            ivec_push(out, v[i].id);
}

/* ---- cache ---- */

/* The word's slot: its own, or the free one where it belongs. */
static struct cache_slot *tok_bpe_cache_slot(struct bpe_cache *c, const char *word, size_t n, uint64_t hash)
{
    size_t i = (size_t)hash & (CACHE_SLOTS - 1);

    while (c->slots[i].hash) {
        const struct cache_slot *s = &c->slots[i];
        if (s->hash == hash && s->n_bytes == n && !memcmp(c->data + s->at, word, n))
            break;
        i = (i + 1) & (CACHE_SLOTS - 1);
    }
    return &c->slots[i];
}

/* The cache of known words, made at its first use. */
static struct bpe_cache *tok_bpe_cache_of(struct bpe *b)
{
    if (!b->cache) {
        b->cache = xcalloc(1, sizeof *b->cache);
        b->cache->slots = xcalloc(CACHE_SLOTS, sizeof *b->cache->slots);
        b->cache->data = xmalloc(CACHE_BYTES);
    }
    return b->cache;
}

static size_t tok_bpe_aligned(size_t n)
{
    return (n + 3) & ~(size_t)3;
}

/* Remembers a word's tokens; a full cache is emptied first. */
static void tok_bpe_cache_put(struct bpe_cache *c, const char *word, size_t n, uint64_t hash, const int32_t *ids,
                              size_t n_ids)
{
    size_t need = tok_bpe_aligned(n) + n_ids * sizeof *ids;
    struct cache_slot *s;

    if (c->used + need > CACHE_BYTES || c->n_slots >= CACHE_SLOTS / 2) {
        memset(c->slots, 0, CACHE_SLOTS * sizeof *c->slots);
        c->used = c->n_slots = 0;
    }
    s = tok_bpe_cache_slot(c, word, n, hash);
    *s = (struct cache_slot){hash, (uint32_t)c->used, (uint16_t)n, (uint16_t)n_ids};
    memcpy(c->data + c->used, word, n);
    memcpy(c->data + c->used + tok_bpe_aligned(n), ids, n_ids * sizeof *ids);
    c->used += need;
    c->n_slots++;
}

/* Appends a short word's tokens, from the cache if it was seen. */
static void tok_bpe_encode_short(struct bpe *b, const char *word, size_t n, struct ivec *out)
{
    int32_t ids[SHORT_WORD], ranks[SHORT_WORD], merged[SHORT_WORD];
    struct bpe_cache *c = tok_bpe_cache_of(b);
    uint64_t hash = hash64(word, n, 0) | 1;
    const struct cache_slot *s = tok_bpe_cache_slot(c, word, n, hash);
    size_t k;

    if (s->hash) {
        ivec_append(out, (const int32_t *)(c->data + s->at + tok_bpe_aligned(n)), s->n_ids);
        return;
    }
    k = tok_bpe_bytes_to_ids(b, word, n, ids);
    k = tok_bpe_merge_short(b, ids, ranks, merged, k);
    tok_bpe_cache_put(c, word, n, hash, ids, k);
    ivec_append(out, ids, k);
}

void bpe_encode(struct bpe *b, const char *word, size_t n, struct ivec *out)
{
    if (n == 1 && b->byte_id[(unsigned char)word[0]] >= 0) {
        ivec_push(out, b->byte_id[(unsigned char)word[0]]);
        return;
    }
    if (n <= SHORT_WORD) {
        tok_bpe_encode_short(b, word, n, out);
        return;
    }
    while (n > LONG_MAX_BYTES) { /* beyond any real text; merges do not cross this border */
        tok_bpe_encode_long(b, word, LONG_MAX_BYTES, out);
        word += LONG_MAX_BYTES;
        n -= LONG_MAX_BYTES;
    }
    tok_bpe_encode_long(b, word, n, out);
}
