/* test_extract.c - which program a response holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "task/extract.h"

#define NEW "class ModelNew(nn.Module):\n    pass\n"

struct row {
    const char *text, *how, *code; /* code NULL: not found */
    enum extract_kind kind;
    int fence;
    bool model;
};

static const struct row rows[] = {
    {"```python\n" NEW "```\n", "last fence with ModelNew", NEW, EXTRACT_RESPONSE, 0, true},
    {"First:\n```py\nx = 1\n```\nthen\n```python\n" NEW "```", "last fence with ModelNew", NEW, EXTRACT_RESPONSE, 1,
     true},
    {"```python\nclass ModelNew: a=1\n```\n```python\n" NEW "```\n```python\nprint(1)\n```",
     "last fence with ModelNew", NEW, EXTRACT_RESPONSE, 1, true},
    {"```python\nx = 1\n```\n```c\nint y;\n```", "first fence", "x = 1\n", EXTRACT_RESPONSE, 0, false},
    {"```python\n" NEW "```\n```python\ndef custom_kernel(data):\n    return data\n```", "last fence with ModelNew",
     NEW, EXTRACT_RESPONSE, 0, true},
    {"```\n" NEW "```", "last fence with ModelNew", NEW, EXTRACT_RESPONSE, 0, true},
    {"~~~~python\n" NEW "~~~\n~~~~", "last fence with ModelNew", NEW "~~~\n", EXTRACT_RESPONSE, 0, true},
    {"   ```Python\n" NEW "   ```", "last fence with ModelNew", NEW, EXTRACT_RESPONSE, 0, true},
    {"```python\n" NEW, "last fence with ModelNew", NEW, EXTRACT_RESPONSE, 0, true}, /* unclosed */
    {"<think>```python\nclass ModelNew: bad\n```</think>```python\n" NEW "```", "last fence with ModelNew", NEW,
     EXTRACT_RESPONSE, 0, true},
    {"```python\nclass ModelNew: bad\n```</think>\n```python\n" NEW "```", "last fence with ModelNew", NEW,
     EXTRACT_RESPONSE, 0, true},
    {"<think>```python\n" NEW "```", "none", NULL, EXTRACT_RESPONSE, -1, false},
    {"no code at all", "none", NULL, EXTRACT_RESPONSE, -1, false},
    {NEW, "none", NULL, EXTRACT_RESPONSE, -1, false},
    {NEW, "file", NEW, EXTRACT_AUTO, -1, true},
    {NEW "```python\nx\n```", "file", NEW "```python\nx\n```", EXTRACT_FILE, -1, true},
    {"```python\nclass ModelNewest: pass\n```", "first fence", "class ModelNewest: pass\n", EXTRACT_RESPONSE, 0, false},
    {"```python\n# class ModelNew\n```", "first fence", "# class ModelNew\n", EXTRACT_RESPONSE, 0, false},
    {"```python\r\n" NEW "```\r\n", "last fence with ModelNew", NEW, EXTRACT_RESPONSE, 0, true},
    {"```python\n```", "first fence", "", EXTRACT_RESPONSE, 0, false},
    {"text ```python x = 1``` text\n", "none", NULL, EXTRACT_RESPONSE, -1, false}, /* no fence begins inside a line */
    {"```python\n  class   ModelNew (nn.Module): pass\n```", "last fence with ModelNew",
     "  class   ModelNew (nn.Module): pass\n", EXTRACT_RESPONSE, 0, true},
    {"", "none", NULL, EXTRACT_AUTO, -1, false},
};

static void test_rules(void **state)
{
    struct extraction x;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];

        extract_code(r->text, strlen(r->text), r->kind, &x);
        if (r->code ? !x.found || strlen(r->code) != x.n || memcmp(r->code, r->text + x.offset, x.n) : x.found && x.n)
            fail_msg("row %zu: found %d, how %s, offset %zu, n %zu", i, x.found, x.how, x.offset, x.n);
        if (r->code || *r->text)
            assert_string_equal(x.how, r->how);
        assert_int_equal(x.fence, r->fence);
        assert_int_equal(x.defines_modelnew, r->model);
    }
}

static void test_flags(void **state)
{
    static const char open[] = "```python\n" NEW, thought[] = "<think>a</think>x";
    struct extraction x;

    (void)state;
    extract_code(open, strlen(open), EXTRACT_RESPONSE, &x);
    assert_false(x.closed);
    extract_code(thought, strlen(thought), EXTRACT_RESPONSE, &x);
    assert_true(x.think_dropped);
    assert_false(x.found);
}

static void whole(void **state)
{
    (void)state;
    assert_true(extract_is_whole("no program at all", true));
    assert_true(extract_is_whole("```python\nclass ModelNew(x):\n  pass\n```\nand then", false));
    assert_false(extract_is_whole("```python\nclass ModelNew(x):\n  pas", false));
    assert_false(extract_is_whole("```python\nx = 1\n```\nclass", false));
    assert_false(extract_is_whole("", false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules), cmocka_unit_test(test_flags),
                                       cmocka_unit_test(whole)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
