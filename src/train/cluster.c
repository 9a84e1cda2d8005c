/* cluster.c - see cluster.h. A small tokenizer over Python-with-CUDA text, then set arithmetic. */
#include "train/cluster.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

/* Words that carry structure. Sorted: looked up by binary search. */
static const char *const words[] = {
    "__device__", "__global__", "__host__", "__restrict__", "__shared__", "__shfl_down_sync", "__shfl_sync",
    "__shfl_up_sync", "__shfl_xor_sync", "__syncthreads", "__syncwarp", "atomicAdd", "atomicMax", "atomicMin", "auto",
    "blockDim", "blockIdx", "bool", "break", "class", "const", "continue", "contiguous", "data_ptr", "def", "dim3",
    "do", "double", "else", "empty", "empty_like", "exp", "expf", "extern", "float", "float2", "float4", "floorf",
    "fmaxf", "fminf", "for", "forward", "gridDim", "half", "if", "inline", "int", "load", "load_inline", "logf", "long",
    "max", "min", "numel", "pragma", "reinterpret_cast", "return", "rsqrtf", "self", "sigmoid", "size", "size_t",
    "sqrtf", "static", "super", "tanhf", "template", "threadIdx", "torch", "unroll", "unsigned", "void", "warpSize",
    "while", "x", "y", "z", "zeros", "zeros_like",
};

static int cluster_word_cmp(const void *key, const void *item)
{
    return strcmp(key, *(const char *const *)item);
}

/* True for a keyword, which renaming does not change. */
static bool cluster_is_word(const char *s, size_t n)
{
    char key[32];

    if (n >= sizeof key)
        return false;
    memcpy(key, s, n);
    key[n] = 0;
    return bsearch(key, words, sizeof words / sizeof *words, sizeof *words, cluster_word_cmp) != NULL;
}

/* Behind spaces and comments. */
static const char *cluster_skip_blank(const char *s)
{
    for (;;) {
        while (isspace((unsigned char)*s))
            s++;
        if (s[0] == '/' && s[1] == '/') {
            s += strcspn(s, "\n");
        } else if (s[0] == '/' && s[1] == '*') {
            const char *end = strstr(s + 2, "*/");

            s = end ? end + 2 : s + strlen(s);
        } else {
            return s;
        }
    }
}

/* Hash of the next token, or 0 at the end. */
static uint64_t cluster_next_token(const char *begin, const char **ps)
{
    const char *s = cluster_skip_blank(*ps), *t = s;
    uint64_t h;

    if (!*s) {
        *ps = s;
        return 0;
    }
    if (isalpha((unsigned char)*s) || *s == '_') {
        while (isalnum((unsigned char)*t) || *t == '_')
            t++;
        /* x, y, z carry structure only as members: threadIdx.x */
        bool member = s > begin && s[-1] == '.';
        bool axis = t - s == 1 && strchr("xyz", *s);
        h = cluster_is_word(s, (size_t)(t - s)) && (!axis || member) ? hash64(s, (size_t)(t - s), 1) : 2;
    } else if (isdigit((unsigned char)*s)) {
        while (isalnum((unsigned char)*t) || *t == '.')
            t++;
        h = 3;
    } else {
        h = hash64(s, 1, 4);
        t++;
    }
    *ps = t;
    return h ? h : 1;
}

static int cluster_u64_cmp(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The MinHash sketch of a program's shingles of tokens; comments and spaces do not count. */
void sketch_program(const char *text, struct sketch *ret)
{
    uint64_t window[CLUSTER_SHINGLE], *v = NULL, h;
    size_t n = 0, cap = 0, seen = 0, k = 0;

    for (const char *s = text; (h = cluster_next_token(text, &s)) != 0; seen++) {
        window[seen % CLUSTER_SHINGLE] = h;
        if (seen + 1 < CLUSTER_SHINGLE)
            continue;
        uint64_t acc = 0;
        for (size_t i = 1; i <= CLUSTER_SHINGLE; i++)
            acc = hash64(&window[(seen + i) % CLUSTER_SHINGLE], sizeof h, acc);
        if (n == cap)
            v = xrealloc(v, (cap = cap ? 2 * cap : 256) * sizeof *v);
        v[n++] = acc;
    }
    if (n)
        qsort(v, n, sizeof *v, cluster_u64_cmp);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || v[i] != v[i - 1])
            v[k++] = v[i];
    *ret = (struct sketch){v, k};
}

void sketch_free(struct sketch *s)
{
    free(s->hash);
    *s = (struct sketch){0};
}

double sketch_jaccard(const struct sketch *a, const struct sketch *b)
{
    size_t i = 0, j = 0, both = 0;

    if (a->n == 0 && b->n == 0)
        return 1;
    while (i < a->n && j < b->n) {
        if (a->hash[i] == b->hash[j]) {
            both++, i++, j++;
        } else if (a->hash[i] < b->hash[j]) {
            i++;
        } else {
            j++;
        }
    }
    return (double)both / (double)(a->n + b->n - both);
}

static size_t cluster_find_root(size_t *parent, size_t i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

size_t cluster_assign(const struct sketch *s, size_t n, double threshold, int *label)
{
    size_t *parent = xcalloc(n ? n : 1, sizeof *parent), count = 0;

    for (size_t i = 0; i < n; i++)
        parent[i] = i;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            if (sketch_jaccard(&s[i], &s[j]) >= threshold) {
                size_t a = cluster_find_root(parent, i), b = cluster_find_root(parent, j);

                parent[a > b ? a : b] = a > b ? b : a; /* the root is the first member */
            }
    for (size_t i = 0; i < n; i++) {
        size_t r = cluster_find_root(parent, i);

        label[i] = r == i ? (int)count++ : label[r];
    }
    free(parent);
    return count;
}

double cluster_effective(const int *label, size_t n)
{
    double h = 0;

    if (n == 0)
        return 0;
    /* Each program contributes -1/n log(share of its cluster): the entropy, summed over members. */
    for (size_t i = 0; i < n; i++) {
        size_t same = 0;

        for (size_t j = 0; j < n; j++)
            same += label[j] == label[i];
        h -= log((double)same / (double)n) / (double)n;
    }
    return exp(h);
}

double cluster_uniform(const int *label, size_t n, size_t k, struct rng *r)
{
    int *drawn = xcalloc(n ? n : 1, sizeof *drawn);
    double sum = 0;

    if (n)
        memcpy(drawn, label, n * sizeof *drawn);
    for (int round = 0; round < UNIFORM_ROUNDS; round++) {
        for (size_t i = 0; i < k; i++) { /* the first k of a shuffle */
            size_t at = i + rng_below(r, n - i);
            int l = drawn[i];

            drawn[i] = drawn[at];
            drawn[at] = l;
        }
        sum += cluster_effective(drawn, k);
    }
    free(drawn);
    return sum / UNIFORM_ROUNDS;
}

void cluster_draw(const int *label, size_t n, size_t n_clusters, struct rng *r, size_t *pick)
{
    for (size_t c = 0; c < n_clusters; c++) {
        size_t members = 0, k;

        for (size_t i = 0; i < n; i++)
            members += label[i] == (int)c;
        k = rng_below(r, members);
        for (size_t i = 0; i < n; i++)
            if (label[i] == (int)c && k-- == 0) {
                pick[c] = i;
                break;
            }
    }
}
