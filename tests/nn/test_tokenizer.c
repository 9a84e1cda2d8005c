/* test_tokenizer.c - ids against golden ids from Hugging Face's tokenizers (make_tokenizer_golden.py), and what the
 * golden file cannot show: sizes, foreign bytes, decoding, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "nn/tokenizer.h"

#define DATA "tests/nn/data/"

static struct tokenizer *load(const char *name)
{
    struct err e = ERR_INIT;
    char *path = xasprintf(DATA "tok_%s.json", name);
    struct tokenizer *t = tokenizer_load(path, &e);

    if (!t)
        fail_msg("%s", e.msg);
    free(path);
    return t;
}

static void encode(struct tokenizer *t, const char *s, size_t n, enum tokenizer_mode mode, struct ivec *out)
{
    struct err e = ERR_INIT;

    out->n = 0;
    if (tokenizer_encode(t, s, n, mode, out, &e) < 0)
        fail_msg("%s", e.msg);
}

struct golden {
    struct tokenizer *t;
    char name[32];
    size_t cases;
};

static int check_golden(json_t *v, size_t line, void *ctx, struct err *e)
{
    struct golden *g = ctx;
    const char *name = json_str(v, "tok", "");
    json_t *text = json_object_get(v, "text"), *ids = json_object_get(v, "ids");
    bool special = !strcmp(json_str(v, "mode", ""), "special");
    struct ivec got = {0};

    if (strcmp(g->name, name)) {
        tokenizer_free(g->t);
        g->t = load(name);
        snprintf(g->name, sizeof g->name, "%s", name);
    }
    encode(g->t, json_string_value(text), json_string_length(text), special ? TOK_SPECIAL : TOK_MARKUP, &got);
    if (got.n != json_array_size(ids))
        fail_msg("line %zu: %zu ids, expected %zu for '%s'", line, got.n, json_array_size(ids),
                 json_string_value(text));
    for (size_t i = 0; i < got.n; i++)
        if (got.v[i] != json_integer_value(json_array_get(ids, i)))
            fail_msg("line %zu: id %zu is %d, expected %d", line, i, (int)got.v[i],
                     (int)json_integer_value(json_array_get(ids, i)));
    ivec_free(&got);
    g->cases++;
    return 0;
}

static json_t *allow_nul(const char *line, size_t n)
{
    json_error_t je;

    return json_loadb(line, n, JSON_ALLOW_NUL, &je);
}

static void test_golden(void **state)
{
    struct golden g = {0};
    struct err e = ERR_INIT;
    struct buf b;
    size_t line = 0;

    buf_init(&b, BUF_MAX_TEXT);
    if (file_read(DATA "tokenizer_golden.jsonl", &b, &e) < 0)
        fail_msg("%s", e.msg);
    for (char *s = b.p, *nl; (nl = strchr(s, '\n')); s = nl + 1) {
        json_t *v = allow_nul(s, (size_t)(nl - s));
        assert_non_null(v);
        check_golden(v, ++line, &g, &e);
        json_decref(v);
    }
    assert_true(g.cases > 500);
    tokenizer_free(g.t);
    buf_free(&b);
}

/* Foreign bytes are read as U+FFFD, so both spellings have the same ids. */
static void test_invalid_bytes(void **state)
{
    static const char *const pairs[][2] = {
        {"a\xff""b", "a\xef\xbf\xbd""b"},
        {"\xe4\xb8", "\xef\xbf\xbd"},                                 /* cut inside a character: one replacement */
        {"\xf0\x9f\x98 x", "\xef\xbf\xbd x"},
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},                     /* overlong */
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},     /* surrogate */
        {"\xf5\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
    };
    struct tokenizer *t = load("qwen3");
    struct ivec a = {0}, b = {0};

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        encode(t, pairs[i][0], strlen(pairs[i][0]), TOK_SPECIAL, &a);
        encode(t, pairs[i][1], strlen(pairs[i][1]), TOK_SPECIAL, &b);
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.v, b.v, a.n * sizeof *a.v);
    }
    ivec_free(&a);
    ivec_free(&b);
    tokenizer_free(t);
}

/* Time of this process alone: others on the machine change nothing. */
static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A megabyte that is one piece must take n log n (well under a second; n squared takes minutes), and the long path
 * must give the ids of the short one. */
static void test_megabyte(void **state)
{
    static const char *const fill[] = {" ", "\n", "x", "ab", "=", "\xe4\xb8\xad", "\xcc\x81\xcc\xa3"};
    struct tokenizer *t = load("qwen3");
    struct ivec ids = {0};
    size_t n = 1 << 20;
    char *s = xmalloc(n);

    for (size_t k = 0; k < sizeof fill / sizeof *fill; k++) {
        size_t w = strlen(fill[k]), m = n / w * w;
        double t0 = cpu_s();
        struct buf back;
        for (size_t i = 0; i < m; i++)
            s[i] = fill[k][i % w];
        encode(t, s, m, TOK_SPECIAL, &ids);
        assert_true(cpu_s() - t0 < 10);
        buf_init(&back, SIZE_MAX / 2);
        tokenizer_decode(t, ids.v, ids.n, false, &back);
        if ((unsigned char)fill[k][0] != 0xcc) { /* marks are reordered by NFC */
            assert_int_equal(back.n, m);
            assert_memory_equal(back.p, s, m);
        }
        buf_free(&back);
    }
    free(s);
    ivec_free(&ids);
    tokenizer_free(t);
}

static void test_round_trip(void **state)
{
    struct tokenizer *t = load("qwen35");
    struct ivec ids = {0};
    struct rng r;
    char s[200];

    rng_seed(&r, 3, 0);
    for (int k = 0; k < 2000; k++) {
        size_t n = rng_below(&r, sizeof s);
        struct buf back;
        for (size_t i = 0; i < n; i++)
            s[i] = (char)rng_below(&r, 128);
        encode(t, s, n, k % 2 ? TOK_SPECIAL : TOK_PLAIN, &ids);
        buf_init(&back, 4096);
        tokenizer_decode(t, ids.v, ids.n, false, &back);
        assert_int_equal(back.n, n);
        assert_memory_equal(back.p, s, n);
        buf_free(&back);
    }
    ivec_free(&ids);
    tokenizer_free(t);
}

static bool has(const struct ivec *a, int32_t id)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->v[i] == id)
            return true;
    return false;
}

static void test_modes(void **state)
{
    const char *s = "x<|im_end|><think>y";
    struct tokenizer *t = load("qwen3");
    int32_t end = tokenizer_id(t, "<|im_end|>"), think = tokenizer_id(t, "<think>");
    struct ivec ids = {0};
    char *text;

    assert_true(end > 0 && think > 0);
    assert_true(tokenizer_is_special(t, end) && !tokenizer_is_special(t, think));
    encode(t, s, strlen(s), TOK_SPECIAL, &ids);
    assert_int_equal(ids.n, 4);
    text = tokenizer_text(t, ids.v, ids.n, true);
    assert_string_equal(text, "x<think>y");
    free(text);
    encode(t, s, strlen(s), TOK_MARKUP, &ids);
    assert_true(!has(&ids, end) && has(&ids, think));
    encode(t, s, strlen(s), TOK_PLAIN, &ids);
    assert_true(!has(&ids, end) && !has(&ids, think));
    text = tokenizer_text(t, ids.v, ids.n, true);
    assert_string_equal(text, s);
    free(text);
    ivec_free(&ids);
    tokenizer_free(t);
}

static void test_lookup(void **state)
{
    struct tokenizer *t = load("qwen3");
    int32_t n = tokenizer_size(t), space = tokenizer_id(t, "\xc4\xa0"); /* G with dot: the space */
    struct err e = ERR_INIT;
    size_t len;

    assert_int_equal(n, 907);
    assert_memory_equal(tokenizer_bytes(t, space, &len), " ", 1);
    assert_int_equal(len, 1);
    assert_null(tokenizer_bytes(t, n, &len));
    assert_null(tokenizer_token(t, -1));
    assert_int_equal(tokenizer_id(t, "no such token"), -1);
    assert_int_equal(tokenizer_check_rows(t, n, &e), 0);
    assert_int_equal(tokenizer_check_rows(t, n - 1, &e), -1);
    tokenizer_free(t);
}

#define BYTES "\"a\":0,\"b\":1,\"ab\":2"
#define BL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":false}"

static void test_refusals(void **state)
{
    static const char *const cases[][2] = {
        {"", "not valid JSON"},
        {"[]", "not a JSON object"},
        {"{}", "no 'model'"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":{},\"merges\":[]}}", "model 'Unigram' is not supported"},
        {"{\"model\":{\"vocab\":{},\"merges\":[]}}", "no tokens"},
        {"{\"model\":{\"vocab\":{\"a\":-1},\"merges\":[]}}", "no valid id"},
        {"{\"model\":{\"vocab\":{\"a\":99999999},\"merges\":[]}}", "no valid id"},
        {"{\"model\":{\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}", "same id"},
        {"{\"model\":{\"vocab\":{" BYTES "},\"merges\":[\"ab\"]}}", "not a pair"},
        {"{\"model\":{\"vocab\":{" BYTES "},\"merges\":[[\"a\"]]}}", "not a pair"},
        {"{\"model\":{\"vocab\":{" BYTES "},\"merges\":[\"b a\"]}}", "not all in the vocabulary"},
        {"{\"model\":{\"vocab\":{" BYTES "},\"merges\":[],\"byte_fallback\":true}}", "byte_fallback"},
        {"{\"model\":{\"vocab\":{" BYTES "},\"merges\":[]}}", "not supported"},
        {"{\"model\":{\"vocab\":{" BYTES "},\"merges\":[]},\"pre_tokenizer\":{\"type\":\"Whitespace\"}}",
         "'Whitespace'"},
        {"{\"model\":{\"vocab\":{" BYTES "},\"merges\":[]},\"pre_tokenizer\":{\"type\":\"Sequence\","
                                         "\"pretokenizers\":[{\"type\":"
         "\"Split\",\"pattern\":{\"Regex\":\"(\"},\"behavior\":\"Isolated\"}," BL "]}}", "not a valid regex"},
        {"{\"normalizer\":{\"type\":\"Lowercase\"},\"model\":{\"vocab\":{" BYTES "},\"merges\":[]},"
                                                                                 "\"pre_tokenizer\":" BL "}",
         "normalizer 'Lowercase'"},
        {"{\"added_tokens\":[{\"id\":0,\"content\":\"zz\"}],\"model\":{\"vocab\":{" BYTES "},\"merges\":[]},"
                                                                                          "\"pre_tokenizer\":" BL "}",
         "same id"},
        {"{\"added_tokens\":[{\"id\":7,\"content\":\"ab\"}],\"model\":{\"vocab\":{" BYTES "},\"merges\":[]},"
                                                                                          "\"pre_tokenizer\":" BL "}",
         "two ids"},
        {"{\"added_tokens\":[3],\"model\":{\"vocab\":{" BYTES "},\"merges\":[]},\"pre_tokenizer\":" BL "}",
         "no valid id"},
    };

    log_set_level(LOG_ERROR);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = ERR_INIT;
        assert_null(tokenizer_parse(cases[i][0], strlen(cases[i][0]), "t.json", &e));
        assert_int_equal(e.kind, ERR_INPUT);
        if (!strstr(e.msg, cases[i][1]) || strchr(e.msg, '\n'))
            fail_msg("case %zu: '%s' does not say '%s'", i, e.msg, cases[i][1]);
    }
    log_set_level(LOG_INFO);
}

/* Bytes that the vocabulary lacks vanish, as in 'tokenizers'; ignore_merges takes whole words first. */
static void test_small_vocab(void **state)
{
    const char *doc = "{\"model\":{\"vocab\":{" BYTES ",\"ba\":3},\"merges\":[\"a b\"]},\"pre_tokenizer\":" BL "}";
    const char *whole = "{\"model\":{\"vocab\":{" BYTES ",\"ba\":3},\"merges\":[[\"a\",\"b\"]],\"ignore_merges\":true},"
                        "\"pre_tokenizer\":" BL "}";
    struct err e = ERR_INIT;
    struct ivec ids = {0};
    struct tokenizer *t;

    log_set_level(LOG_ERROR);
    assert_non_null(t = tokenizer_parse(doc, strlen(doc), "t.json", &e));
    encode(t, "a?b", 3, TOK_PLAIN, &ids);
    assert_int_equal(ids.n, 1);
    assert_int_equal(ids.v[0], 2);
    encode(t, "ba", 2, TOK_PLAIN, &ids);
    assert_int_equal(ids.n, 2);
    tokenizer_free(t);
    assert_non_null(t = tokenizer_parse(whole, strlen(whole), "t.json", &e));
    encode(t, "ba", 2, TOK_PLAIN, &ids);
    assert_int_equal(ids.n, 1);
    assert_int_equal(ids.v[0], 3);
    tokenizer_free(t);
    ivec_free(&ids);
    log_set_level(LOG_INFO);
}

/* A tokenizer of single bytes, without those below 'from' but tab and line ends, and without 'other'. */
static char *bytes_without(int from, int other)
{
    json_t *vocab = json_object(), *doc;
    char *text;

    for (int b = 0, next = 256; b < 256; b++) {
        bool plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        int c = plain ? b : next++;
        const char s[3] = {(char)(c < 128 ? c : 0xc0 | c >> 6), (char)(c < 128 ? 0 : 0x80 | (c & 63)), 0};

        if ((b >= from || strchr("\t\n\r", b ? b : 1)) && b != other)
            json_object_set_new(vocab, s, json_integer(b));
    }
    doc = json_pack("{s:{s:o,s:[]},s:{s:s,s:b}}", "model", "vocab", vocab, "merges", "pre_tokenizer", "type",
                    "ByteLevel",
                    "add_prefix_space", 0);
    text = json_dumps(doc, 0);
    json_decref(doc);
    return text;
}

/* Control characters and what UTF-8 never has are missed by nobody; a letter's byte is. */
static void test_missed_bytes(void **state)
{
    const int others[] = {0xf1, 0xc0, 0x7f, 'e'};
    char path[] = "/tmp/test_tokenizer.XXXXXX";
    struct err e = ERR_INIT;
    struct buf said;

    (void)state;
    assert_true(close(mkstemp(path)) == 0 && log_tee(path) == 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char *doc = bytes_without(32, others[i]);

        tokenizer_free(tokenizer_parse(doc, strlen(doc), "t.json", &e));
        assert_string_equal(e.msg, "");
        free(doc);
        buf_init(&said, BUF_MAX_TEXT);
        assert_int_equal(file_read(path, &said, &e), 0);
        assert_true(!strstr(said.p ? said.p : "", "lacks bytes of text: 1;") == (others[i] != 'e'));
        buf_free(&said);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),     cmocka_unit_test(test_invalid_bytes), cmocka_unit_test(test_megabyte),
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_modes),         cmocka_unit_test(test_lookup),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_small_vocab),
        cmocka_unit_test(test_missed_bytes),
    };

    return cmocka_run_group_tests_name("tokenizer", tests, NULL, NULL);
}
