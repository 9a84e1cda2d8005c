/* test_codes.c - the table of codes, and the line of a user's file that a verdict is about. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "eval/verdict/codes.h"
#include "eval/verdict/locate.h"
#include "eval/verdict/place.h"
#include "eval/verdict/record.h"

static void test_table(void **state)
{
    (void)state;
    for (const struct code *c = code_table; c->id; c++) {
        assert_true(strlen(c->id) == 5 && !strncmp(c->id, "MC", 2));
        assert_true(c == code_table || strcmp(c[-1].id, c->id) < 0);
        assert_true(*c->title && *c->why && (*c->fix || !strcmp(c->category, "passed")));
        assert_ptr_equal(code_find(c->id + 2), c);
    }
    assert_null(code_find("MC999"));
}

/* Each category of a record ends in a row that takes all of it. */
static void test_every_category_has_a_code(void **state)
{
    static const char *const categories[] = {"extraction_error", "compile_error", "runtime_error", "correctness_error",
                                             "cheating", "timeout", "unsupported", "infra"};
    (void)state;
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++) {
        json_t *rec = record_new("t", "", "c", "", "sim", "strict");

        record_blame(rec, categories[i], "nowhere", "something new");
        assert_string_equal(code_of(rec)->category, categories[i]);
        assert_string_equal(code_of(rec)->key, "");
        json_decref(rec);
    }
}

static const char *code_with(const char *category, const char *stage, const char *key, const char *value)
{
    json_t *rec = record_new("t", "", "c", "", "sim", "strict"), *r = record_blame(rec, category, stage, "m");
    const char *id;

    if (!strcmp(key, "finding"))
        json_object_set_new(r, key, json_pack("{s:s}", "kind", value));
    else
        json_object_set_new(r, key, json_string(value));
    id = code_of(rec)->id;
    json_decref(rec);
    return id;
}

static void test_what_a_reason_says(void **state)
{
    json_t *refusal = record_refusal("t", "sim", "strict", "why");

    (void)state;
    assert_string_equal(code_with("runtime_error", "correctness", "finding", "race"), "MC304");
    assert_string_equal(code_with("cheating", "legality", "rule", "decoy_kernels"), "MC505");
    assert_string_equal(code_with("unsupported", "legality", "name", "other_language"), "MC701");
    assert_string_equal(code_with("timeout", "load", "rule", ""), "MC601");
    assert_string_equal(json_str(refusal, "code", ""), code_of(refusal)->id);
    assert_string_equal(code_of_error("the task cannot be judged: because")->id, "MC901");
    assert_null(code_of_error("all is well"));
    json_decref(refusal);
}

static const char program[] = "import torch\n"                       /* 1 */
                              "a = r\"\"\"\n"                        /* 2: line 1 of the source */
                              "__global__ void k(float *y) {\n"      /* 3 */
                              "    y[0] = 1;\n"                      /* 4 */
                              "}\"\"\"\n"                            /* 5 */
                              "b = '''__global__ void l() {\n"       /* 6 */
                              "    // two\n"                         /* 7 */
                              "    return;\n"                        /* 8 */
                              "}'''\n"                               /* 9 */
                              "c = a.replace('1', '2')\n";           /* 10 */

static void test_line_of_a_source(void **state)
{
    (void)state;
    assert_int_equal(locate_source(program, 3, "y[0] = 1;"), 4);
    assert_int_equal(locate_source(program, 3, "return;"), 8);
    assert_int_equal(locate_source(program, 1, "__global__ void l() {"), 6);
    assert_int_equal(locate_source(program, 30, "y[0] = 1;"), 4); /* put together: the only line that reads so */
    assert_int_equal(locate_source(program, 3, "y[0] = 2;"), 0);
    assert_int_equal(locate_source("x = '''a\nb'''\ny = '''a\nb'''\n", 2, "b"), 0); /* which one? */
    assert_int_equal(locate_source("x = '''a", 1, "a"), 1);
}

/* Files behind the program: the compiler's name may have a folder before it, the answer's too. */
static void test_line_of_a_file(void **state)
{
    static const char joined[] = "class ModelNew: pass\n#@file: src/a.cu\n#|one\n#|two\n"
                                 "#@file: b.cu\n#|#include <x.h>\n#|#line 1\n#|  one\n#|two\n";
    char name[40];

    (void)state;
    assert_true(locate_file(joined, "a.cu", 2, "two", name, sizeof name));
    assert_string_equal(name, "src/a.cu");
    assert_true(locate_file(joined, "/tmp/x/b.cu", 1, "one", name, sizeof name));
    assert_string_equal(name, "b.cu");
    assert_true(locate_file(joined, "b.cu", 2, "two", name, sizeof name));
    assert_false(locate_file(joined, "a.cu", 2, "one", name, sizeof name));
    assert_false(locate_file(joined, "a.cu", 3, "", name, sizeof name));
    assert_false(locate_file(joined, "ab.cu", 2, "two", name, sizeof name));
}

/* Headers stand in front of a file that has them in one text; the compiler counts from "#line". */
static void test_line_behind_headers(void **state)
{
    static const char text[] = "float sq();\n// two\n// three\n#line 1 \"k.cu\"\nfirst\nsecond\n";
    char line[40];

    (void)state;
    assert_true(place_line(text, 2, line, sizeof line));
    assert_string_equal(line, "second");
    assert_true(place_line(text, 3, line, sizeof line));
    assert_string_equal(line, "// three");
    assert_false(place_line(text, 9, line, sizeof line));
    assert_false(place_line(text, 0, line, sizeof line));
}

static void test_place_of_a_response(void **state)
{
    char text[1000];
    int before = snprintf(text, sizeof text, "Words.\n\n```python\n");
    json_t *rec = record_new("t", "", "c", "", "sim", "strict"), *r, *place;

    (void)state;
    snprintf(text + before, sizeof text - (size_t)before, "%s```\n", program);
    record_set(rec, "extraction", json_pack("{s:i,s:i}", "offset", before, "bytes", (int)strlen(program)));
    r = record_blame(rec, "runtime_error", "correctness", "m");
    json_object_set_new(r, "finding", json_pack("{s:s,s:i,s:s,s:s}", "file", "cuda_source", "line", 3, "text",
                                                "y[0] = 1;", "kernel", "k"));
    place = locate_verdict(rec, text, strlen(text), NULL);
    assert_int_equal(json_i64(place, "line", 0), 4 + 3);
    assert_int_equal(json_i64(place, "source_line", 0), 3);
    assert_string_equal(json_str(place, "text", ""), "y[0] = 1;");
    json_decref(place);
    place = locate_verdict(rec, text, 20, NULL); /* another text than the one that was judged */
    assert_true(json_is_null(place));
    json_decref(place);
    json_decref(rec);
}

static void test_names_of_memory(void **state)
{
    static const char source[] = "class ModelNew:\n    def forward(self, x, scale: Dict[str, int] = f(1, 2), *rest):\n";
    json_t *m = json_pack("{s:s,s:s,s:[i,i],s:s,s:i,s:i}", "tensor", "w", "role", "parameter", "shape", 2, 3, "dtype",
                          "float32", "bytes", 24, "at", 32);
    char name[80];
    struct buf b;

    (void)state;
    assert_true(place_argument(source, 0, name, sizeof name));
    assert_string_equal(name, "x");
    assert_true(place_argument(source, 1, name, sizeof name));
    assert_string_equal(name, "scale");
    assert_false(place_argument(source, 2, name, sizeof name));
    assert_false(place_argument("def f(): pass", 0, name, sizeof name));
    buf_init(&b, 1000);
    memory_words("read of 4 bytes 8 bytes past the end of 'device memory' (24 bytes)", m, &b);
    assert_string_equal(b.p, "read of 4 bytes 8 bytes past the end of 'w' (parameter, 2 x 3 float32): element 8 of 6");
    buf_clear(&b);
    memory_words("write of 'device memory' (24 bytes) conflicts with a read", m, &b);
    assert_string_equal(b.p, "write of 'w' (parameter, 2 x 3 float32), element 8 of 6, conflicts with a read");
    buf_clear(&b);
    memory_words("another message", m, &b);
    assert_string_equal(b.p, "another message");
    buf_free(&b);
    json_decref(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table), cmocka_unit_test(test_every_category_has_a_code),
        cmocka_unit_test(test_what_a_reason_says), cmocka_unit_test(test_line_of_a_source),
        cmocka_unit_test(test_line_of_a_file), cmocka_unit_test(test_line_behind_headers),
        cmocka_unit_test(test_place_of_a_response), cmocka_unit_test(test_names_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
