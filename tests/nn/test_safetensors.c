/* test_safetensors.c - what we write reads back; what the format forbids is refused with a line that says why; the
 * half-precision conversions against arithmetic definitions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "nn/safetensors.h"

static char *dir;

static int setup(void **state)
{
    struct err e = ERR_INIT;

    return (dir = dir_temp("st", &e)) ? 0 : -1;
}

static int teardown(void **state)
{
    struct err e = ERR_INIT;
    int rc = dir_remove(dir, &e);

    free(dir);
    return rc;
}

static void ok(int rc, const struct err *e)
{
    if (rc < 0)
        fail_msg("%s", e->msg);
}

static void test_round_trip(void **state)
{
    const int64_t shape_a[] = {2, 3}, shape_b[] = {5}, shape_e[] = {0, 4};
    const float a[] = {1, -2, 3.5f, 0, INFINITY, 1e-30f};
    const uint8_t b[] = {1, 0, 2, 255, 7};
    struct err e = ERR_INIT;
    char *path = path_join(dir, "model.safetensors");
    struct st_writer *w = st_create(path, &e);
    struct safetensors *s;
    const struct st_tensor *t;
    float out[6];

    assert_non_null(w);
    st_set_metadata(w, "format", "pt");
    st_set_metadata(w, "quote", "\"\xff\n");
    ok(st_declare(w, "b", ST_U8, 1, shape_b, &e), &e);
    ok(st_declare(w, "layer.a", ST_F32, 2, shape_a, &e), &e);
    ok(st_declare(w, "empty", ST_F16, 2, shape_e, &e), &e);
    ok(st_declare(w, "scalar", ST_F32, 0, NULL, &e), &e);
    assert_int_equal(st_declare(w, "b", ST_U8, 1, shape_b, &e), -1);
    ok(st_write(w, b, 2, &e), &e); /* pieces need not end at tensor borders */
    ok(st_write(w, b + 2, 3, &e), &e);
    ok(st_write(w, a, sizeof a, &e), &e);
    assert_false(file_exists(path));
    ok(st_write(w, a, 4, &e), &e);
    ok(st_commit(w, &e), &e);
    s = st_open(dir, &e); /* the folder finds model.safetensors */
    assert_non_null(s);
    assert_int_equal(st_count(s), 4);
    assert_string_equal(st_metadata(s, "format"), "pt");
    assert_string_equal(st_metadata(s, "quote"), "\"\xef\xbf\xbd\n");
    assert_int_equal(st_metadata_count(s), 2);
    t = st_find(s, "layer.a");
    assert_true(t && t->dtype == ST_F32 && t->n_dims == 2 && t->shape[1] == 3 && t->n == 6);
    st_to_f32(t, out);
    assert_memory_equal(out, a, sizeof a);
    t = st_find(s, "b");
    st_to_f32(t, out);
    assert_true(out[3] == 255 && out[4] == 7);
    assert_int_equal(st_find(s, "scalar")->n, 1);
    assert_int_equal(st_find(s, "empty")->n, 0);
    assert_null(st_find(s, "nothing"));
    assert_string_equal(st_at(s, 0)->name, "b");
    st_close(s);
    free(path);
}

static void test_unfinished(void **state)
{
    const int64_t shape[] = {4};
    struct err e = ERR_INIT;
    char *path = path_join(dir, "u.safetensors"), **names;
    struct st_writer *w = st_create(path, &e);
    size_t n;

    ok(st_declare(w, "x", ST_F32, 1, shape, &e), &e);
    ok(st_write(w, "12345678", 8, &e), &e);
    assert_int_equal(st_write(w, "123456789", 9, &e), -1); /* more than declared */
    st_abort(w);
    w = st_create(path, &e);
    ok(st_declare(w, "x", ST_F32, 1, shape, &e), &e);
    ok(st_write(w, "12345678", 8, &e), &e);
    assert_int_equal(st_commit(w, &e), -1); /* less than declared */
    assert_false(file_exists(path));
    ok(dir_list(dir, &names, &n, &e), &e);
    for (size_t i = 0; i < n; i++)
        assert_null(strstr(names[i], ".tmp"));
    names_free(names, n);
    assert_null(st_create("/nonexistent/x.safetensors", &e));
    assert_null(st_create("/dev/null", &e)); /* only a finished writer would take its place */
    free(path);
}

/* A file from a header text and n data bytes; pad < 0 gives the true header length, else that one. */
static char *make_file(const char *header, size_t n_data, long long length)
{
    struct err e = ERR_INIT;
    char *path = path_join(dir, "bad.safetensors");
    struct buf b;
    uint64_t len = length < 0 ? strlen(header) : (uint64_t)length;

    buf_init(&b, 1 << 20);
    for (int i = 0; i < 8; i++)
        buf_addc(&b, (char)(len >> 8 * i));
    buf_adds(&b, header);
    for (size_t i = 0; i < n_data; i++)
        buf_addc(&b, (char)i);
    ok(file_write(path, b.p, b.n, &e), &e);
    buf_free(&b);
    return path;
}

static void test_refusals(void **state)
{
#define T(dtype, shape, from, to) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" from "," to "]}"
    static const struct {
        const char *header;
        size_t n_data;
        long long length;
        const char *says;
    } cases[] = {
        {"{}", 0, 1000, "ends inside its header"},
        {"{}", 0, 1ll << 62, "its header would have"},
        {"{}", 0, 0, "header is not a JSON object"},
        {"[]", 0, -1, "header is not a JSON object"},
        {"{\"a\":", 0, -1, "not valid JSON"},
        {"{\"a\":" T("F32", "[1]", "0", "4") ",\"a\":" T("F32", "[1]", "4", "8") "}", 8, -1, "not valid JSON"},
        {"{\"a\":3}", 0, -1, "not described by an object"},
        {"{\"a\":" T("F31", "[1]", "0", "4") "}", 4, -1, "dtype 'F31'"},
        {"{\"a\":" T("F32", "[-1]", "0", "4") "}", 4, -1, "no valid shape"},
        {"{\"a\":" T("F32", "[1.5]", "0", "4") "}", 4, -1, "no valid shape"},
        {"{\"a\":" T("F32", "[4611686018427387904,8]", "0", "4") "}", 4, -1, "no valid shape"},
        {"{\"a\":" T("F32", "[1,1,1,1,1,1,1,1,1]", "0", "4") "}", 4, -1, "no valid shape"},
        {"{\"a\":" T("F32", "[1]", "0", "8") "}", 8, -1, "do not fit its dtype"},
        {"{\"a\":" T("F32", "[1]", "4", "0") "}", 8, -1, "no valid data_offsets"},
        {"{\"a\":" T("F32", "[1]", "-4", "0") "}", 8, -1, "no valid data_offsets"},
        {"{\"a\":" T("F32", "[2]", "0", "8") "}", 4, -1, "ends before the data"},
        {"{\"a\":" T("F32", "[1]", "4", "8") "}", 8, -1, "leaves a hole"},
        {"{\"a\":" T("F32", "[1]", "0", "4") ",\"b\":" T("F32", "[1]", "2", "6") "}", 6, -1, "overlaps"},
        {"{\"a\":" T("F32", "[1]", "0", "4") "}", 5, -1, "1 bytes behind its last tensor"},
        {"{\"__metadata__\":{\"a\":1}}", 0, -1, "metadata 'a' is not a string"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = ERR_INIT;
        char *path = make_file(cases[i].header, cases[i].n_data, cases[i].length);
        assert_null(st_open(path, &e));
        assert_int_equal(e.kind, ERR_INPUT);
        if (!strstr(e.msg, cases[i].says) || strchr(e.msg, '\n'))
            fail_msg("case %zu: '%s' does not say '%s'", i, e.msg, cases[i].says);
        free(path);
    }
}

static void test_short_files(void **state)
{
    struct err e = ERR_INIT;
    char *path = path_join(dir, "short.safetensors");

    for (size_t n = 0; n < 8; n++) {
        ok(file_write(path, "\2\0\0\0\0\0\0\0{}", n, &e), &e);
        assert_null(st_open(path, &e));
    }
    assert_null(st_open("/nonexistent", &e));
    assert_int_equal(e.kind, ERR_INPUT);
    free(path);
}

static void write_shard(const char *name, const char *tensor, float value)
{
    struct err e = ERR_INIT;
    char *path = path_join(dir, name);
    struct st_writer *w = st_create(path, &e);

    ok(st_declare(w, tensor, ST_F32, 0, NULL, &e), &e);
    ok(st_write(w, &value, 4, &e), &e);
    ok(st_commit(w, &e), &e);
    free(path);
}

static struct safetensors *open_index(const char *text, struct err *e)
{
    char *path = path_join(dir, "i.safetensors.index.json");
    struct safetensors *s;

    ok(file_write(path, text, strlen(text), e), e);
    s = st_open(path, e);
    free(path);
    return s;
}

static void test_shards(void **state)
{
    struct err e = ERR_INIT;
    struct safetensors *s;
    float x;

    write_shard("one.safetensors", "a", 1);
    write_shard("two.safetensors", "b", 2);
    write_shard("three.safetensors", "a", 3);
    s = open_index("{\"metadata\":{},\"weight_map\":{\"b\":\"two.safetensors\",\"a\":\"one.safetensors\"}}", &e);
    assert_non_null(s);
    assert_int_equal(st_count(s), 2);
    st_to_f32(st_find(s, "b"), &x);
    assert_true(x == 2);
    st_close(s);
    assert_null(open_index("{\"weight_map\":{\"a\":\"one.safetensors\",\"c\":\"two.safetensors\"}}", &e));
    assert_non_null(strstr(e.msg, "'c', which is not in"));
    assert_null(open_index("{\"weight_map\":{\"a\":\"two.safetensors\",\"b\":\"one.safetensors\"}}", &e));
    assert_null(open_index("{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"three.safetensors\"}}", &e));
    assert_non_null(strstr(e.msg, "in two files"));
    assert_null(open_index("{\"weight_map\":{\"a\":\"../one.safetensors\"}}", &e));
    assert_null(open_index("{\"weight_map\":{\"a\":\"missing.safetensors\"}}", &e));
    write_shard("weights.bin", "a", 1); /* a name that no cache knows as a model's */
    assert_null(open_index("{\"weight_map\":{\"a\":\"weights.bin\"}}", &e));
    assert_null(open_index("{}", &e));
}

static void test_float8(void **state)
{
    static const struct {
        enum st_dtype t;
        uint8_t bits;
        float v;
    } cases[] = {{ST_F8_E4M3, 0x7e, 448}, {ST_F8_E4M3, 0x38, 1}, {ST_F8_E4M3, 0x01, 0.001953125f},
                 {ST_F8_E4M3, 0xb8, -1},
                 {ST_F8_E5M2, 0x7b, 57344}, {ST_F8_E5M2, 0x3c, 1}, {ST_F8_E5M2, 0x7c, INFINITY}};
    float x;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct st_tensor t = {"x", cases[i].t, 0, {0}, 1, 1, &cases[i].bits};
        st_to_f32(&t, &x);
        assert_true(x == cases[i].v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_unfinished), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_short_files), cmocka_unit_test(test_shards),    cmocka_unit_test(test_float8),
    };

    return cmocka_run_group_tests_name("safetensors", tests, setup, teardown);
}
