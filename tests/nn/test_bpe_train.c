/* test_bpe_train.c - merges against a brute-force trainer that recounts everything at each step; files that load again;
 * the same bytes each run; the speed that the quick start needs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "nn/bpe_train.h"
#include "nn/tokenizer.h"

static char *dir;

static int setup(void **state)
{
    struct err e = ERR_INIT;

    return (dir = dir_temp("bpe", &e)) ? 0 : -1;
}

static int teardown(void **state)
{
    struct err e = ERR_INIT;
    int rc = dir_remove(dir, &e);

    free(dir);
    return rc;
}

static json_t *train(const char *const *texts, size_t n, int vocab, int min_count, struct bpe_result *r)
{
    struct bpe_options o = {.vocab_size = vocab, .min_count = min_count};
    struct err e = ERR_INIT;
    char *path = path_join(dir, "tokenizer.json");
    json_t *doc;

    if (bpe_train(texts, NULL, n, &o, dir, r, &e) < 0 || !(doc = json_read(path, &e)))
        fail_msg("%s", e.msg);
    free(path);
    return doc;
}

/* Letters in words separated by spaces: pieces are " word", so the brute force below can split by itself. */
static char *random_words(struct rng *r, size_t n)
{
    char *s = xmalloc(n * 13 + 1);
    size_t k = 0;

    for (size_t i = 0; i < n; i++) {
        size_t len = 1 + rng_below(r, 11);
        s[k++] = ' ';
        for (size_t j = 0; j < len; j++)
            s[k++] = (char)('a' + rng_below(r, 4));
    }
    s[k] = 0;
    return s;
}

#define MAX_WORDS 400
#define MAX_LEN 13

/* Independent trainer: words as arrays of strings' ids, all pairs recounted at every step. Bytes have ids by GPT-2's
 * order: '!' is 0, so 'a' is 64; the space is the 33rd of the characters from U+0100 on, 188 + 32. */
static void check_brute_force(const char *text, json_t *merges)
{
    static int w[MAX_WORDS][MAX_LEN], len[MAX_WORDS];
    static char *name[1000];
    int n = 0, next = 256;
    size_t m;
    json_t *v;

    for (const char *s = text; *s; s++) {
        if (*s == ' ')
            len[n++] = 0;
        w[n - 1][len[n - 1]++] = *s == ' ' ? 220 : *s - 'a' + 64;
    }
    for (int i = 0; i < 4; i++)
        name[64 + i] = xasprintf("%c", 'a' + i);
    name[220] = xstrdup("\xc4\xa0");
    json_array_foreach(merges, m, v) {
        int best_a = -1, best_b = -1, best = 0;
        char *pair;
        for (int a = 0; a < next; a++)
            for (int b = 0; b < next && name[a]; b++) {
                int count = 0;
                if (!name[b])
                    continue;
                for (int i = 0; i < n; i++)
                    for (int j = 0; j + 1 < len[i]; j++)
                        count += w[i][j] == a && w[i][j + 1] == b;
                if (count > best) {
                    best = count;
                    best_a = a;
                    best_b = b;
                }
            }
        assert_true(best >= 2);
        pair = xasprintf("%s %s", name[best_a], name[best_b]);
        assert_string_equal(json_string_value(v), pair);
        free(pair);
        name[next] = xasprintf("%s%s", name[best_a], name[best_b]);
        for (int i = 0; i < n; i++) {
            int k = 0;
            for (int j = 0; j < len[i]; j++) {
                bool hit = j + 1 < len[i] && w[i][j] == best_a && w[i][j + 1] == best_b;
                w[i][k++] = hit ? next : w[i][j];
                j += hit;
            }
            len[i] = k;
        }
        next++;
    }
    for (int i = 0; i < 1000; i++) {
        free(name[i]);
        name[i] = NULL;
    }
}

static void test_brute_force(void **state)
{
    struct rng r;

    rng_seed(&r, 1, 0);
    for (int k = 0; k < 4; k++) {
        char *text = random_words(&r, 150 + (size_t)k * 60);
        const char *texts[] = {text};
        json_t *doc = train(texts, 1, 259 + 40, 2, NULL);
        json_t *merges = json_object_get(json_object_get(doc, "model"), "merges");
        assert_int_equal(json_array_size(merges), 40);
        check_brute_force(text, merges);
        json_decref(doc);
        free(text);
    }
}

static void test_files(void **state)
{
    static const char *const texts[] = {"__global__ void k(float* x) { x[i] = fmaxf(x[i], 0.f); }\n",
                                        "__global__ void k2(float* y) { y[i] = x[i]; }\n",
                                        "\xe6\xb7\xb1\xe5\xba\xa6 \xff"};
    struct err e = ERR_INIT;
    struct bpe_result r;
    json_t *doc = train(texts, 3, 300, 2, &r);
    struct tokenizer *t = tokenizer_load(dir, &e);
    struct ivec ids = {0};
    char *back;

    assert_non_null(t);
    assert_int_equal(tokenizer_size(t), r.vocab_size);
    assert_int_equal(r.n_merges, r.vocab_size - 259);
    assert_int_equal(tokenizer_id(t, "<|im_end|>"), r.vocab_size - 1);
    assert_int_equal(tokenizer_id(t, "!"), 0);
    for (int i = 0; i < 2; i++) {
        ids.n = 0;
        assert_int_equal(tokenizer_encode(t, texts[i], strlen(texts[i]), TOK_SPECIAL, &ids, &e), 0);
        assert_true(ids.n < strlen(texts[i]));
        back = tokenizer_text(t, ids.v, ids.n, false);
        assert_string_equal(back, texts[i]);
        free(back);
    }
    ivec_free(&ids);
    tokenizer_free(t);
    json_decref(doc);
}

static void test_edges(void **state)
{
    static const char *const once[] = {"abc"};
    struct bpe_options o = {.vocab_size = 258, .min_count = 2};
    struct err e = ERR_INIT;
    struct bpe_result r;
    json_t *doc = train(NULL, 0, 400, 2, &r);

    assert_int_equal(r.vocab_size, 259);
    json_decref(doc);
    doc = train(once, 1, 400, 2, &r); /* no pair is seen twice */
    assert_int_equal(r.n_merges, 0);
    json_decref(doc);
    doc = train(once, 1, 400, 1, &r);
    assert_int_equal(r.n_merges, 2);
    json_decref(doc);
    assert_int_equal(bpe_train(once, NULL, 1, &o, dir, NULL, &e), -1);
    assert_int_equal(e.kind, ERR_INPUT);
}

/* 2 MB in the style of kernels to 2,000 merges: under 5 seconds, twice the same bytes. */
static void test_speed_and_determinism(void **state)
{
    static const char *const parts[] = {"float ", "int ", "x[", "i", "j", "] = ", "fmaxf(", ");\n", "    ", "row",
                                        " * ", "n",
                                        " + ", "__shared__ ", "threadIdx.x", "blockIdx.x", "<<<", ">>>", "if (",
                                        "return "};
    struct buf text, one, two;
    struct rng r;
    struct err e = ERR_INIT;
    const char *texts[1];
    char *path = path_join(dir, "tokenizer.json");
    double t0;

    rng_seed(&r, 2, 0);
    buf_init(&text, 4 << 20);
    while (text.n < 2 << 20) {
        buf_adds(&text, parts[rng_below(&r, 20)]);
        if (rng_below(&r, 4) == 0)
            buf_addf(&text, "v%x", (unsigned)rng_below(&r, 30000));
    }
    texts[0] = text.p;
    t0 = now_s();
    json_decref(train(texts, 1, 2259, 2, NULL));
    assert_true(now_s() - t0 < 5);
    buf_init(&one, BUF_MAX_TEXT);
    buf_init(&two, BUF_MAX_TEXT);
    assert_int_equal(file_read(path, &one, &e), 0);
    json_decref(train(texts, 1, 2259, 2, NULL));
    assert_int_equal(file_read(path, &two, &e), 0);
    assert_int_equal(one.n, two.n);
    assert_memory_equal(one.p, two.p, one.n);
    buf_free(&text);
    buf_free(&one);
    buf_free(&two);
    free(path);
}

/* With a regex of one's own, here lines, a repeated line is one token, its indent and numbers apart; the regex of the
 * file does the same. */
static void test_line_pieces(void **state)
{
    static const char *const texts[] = {"int n = x;\n    v = v * 0.5f;\n        v = v * 0.5f;\nint n = x;\n    "};
    struct bpe_options o = {.vocab_size = 400, .split = "\\n+ *|\\p{N}+(?:\\.\\p{N}+)?|[^\\p{N}\\n]+"};
    struct err e = ERR_INIT;
    char *path = path_join(dir, "tokenizer.json"), *back;
    struct tokenizer *t;
    struct ivec ids = {0};

    assert_int_equal(bpe_train(texts, NULL, 1, &o, dir, NULL, &e), 0);
    assert_non_null(t = tokenizer_load(path, &e));
    assert_int_equal(tokenizer_encode(t, "int n = x;\n    v = v * 0.5f;", 28, TOK_SPECIAL, &ids, &e), 0);
    assert_int_equal(ids.n, 5); /* int n = x; | \n____ | v = v *_ | 0.5 | f; */
    back = tokenizer_text(t, ids.v, ids.n, false);
    assert_string_equal(back, "int n = x;\n    v = v * 0.5f;");
    free(back), free(path);
    ivec_free(&ids);
    tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_brute_force),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_line_pieces),
        cmocka_unit_test(test_speed_and_determinism),
    };

    return cmocka_run_group_tests_name("bpe_train", tests, setup, teardown);
}
