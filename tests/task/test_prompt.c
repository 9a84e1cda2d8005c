/* test_prompt.c - the prompt text: what must be in it, and that cutting feedback never breaks a character. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "task/prompt.h"

static const char code[] = "import torch\nclass Model: pass\n\n";

static void full_has_every_part(void **state)
{
    static const char text[] =
        "[{\"shape\":[6,37],\"dtype\":\"float32\",\"stride\":[37,1]},{\"shape\":[4],\"dtype\":\"int64\"}]";
    json_t *in = json_parse(text, strlen(text), "test", NULL);
    char *inputs = prompt_inputs(in), *p = prompt_task(PROMPT_FULL, code, "sim", inputs);

    assert_string_equal(inputs, "- input 0: float32, shape (6, 37), stride (37, 1)\n- input 1: int64, shape (4,)");
    for (int i = 0; i < 6; i++)
        assert_non_null(strstr(p,
                               (const char *[]){"class Model: pass\n```", "Target backend: CUDA", "ModelNew(nn.Module)",
                                                   "Do not fall back", "(6, 37)", "fenced Python block"}[i]));
    free(p);
    p = prompt_task(PROMPT_FULL, code, "musa", NULL);
    assert_non_null(strstr(p, "torch_musa.utils.musa_extension"));
    assert_null(strstr(p, "Inputs of forward"));
    free(p), free(inputs), json_decref(in);
}

static void plain_is_one_line_and_the_code(void **state)
{
    char *p = prompt_task(PROMPT_PLAIN, code, NULL, "ignored");

    assert_string_equal(p, "Write ModelNew in native CUDA, no torch fallback.\n```python\nimport torch\n"
                           "class Model: pass\n```");
    free(p);
}

/* What editors leave at the ends of lines is not shown; blank lines within the code stay. */
static void blanks_at_line_ends_are_not_shown(void **state)
{
    static const char left[] = "import torch \r\n\t\nclass Model: pass\n    \n    \n    x = 1\t \n  \n\n";
    char *p = prompt_task(PROMPT_PLAIN, left, NULL, NULL);

    assert_string_equal(p, "Write ModelNew in native CUDA, no torch fallback.\n```python\nimport torch\n\n"
                           "class Model: pass\n\n\n    x = 1\n```");
    free(p);
}

/* Every wording is another text that asks for the same. */
static void wordings_ask_for_the_same(void **state)
{
    json_t *texts = json_object();

    for (int full = 0; full < 2; full++)
        for (int w = 0; w < PROMPT_WORDINGS; w++) {
            char *p = prompt_task_worded(full ? PROMPT_FULL : PROMPT_PLAIN, w, code, "musa", NULL);
            assert_non_null(strstr(p, "ModelNew"));
            assert_non_null(strstr(p, "MUSA"));
            assert_non_null(strstr(p, "class Model: pass\n```"));
            assert_true(!full || strstr(p, "Do not fall back"));
            json_object_set_new(texts, p, json_true());
            free(p);
        }
    assert_int_equal(json_object_size(texts), 2 * PROMPT_WORDINGS);
    json_decref(texts);
}

static void feedback_is_cut_at_boundaries(void **state)
{
    char text[1200], *p;
    size_t n = 0;

    while (n + 3 < sizeof text) /* three-byte characters, no spaces: only character boundaries are left */
        memcpy(text + n, "\xe2\x82\xac", 3), n += 3;
    text[n] = 0;
    p = prompt_feedback(PROMPT_PLAIN, text, NULL);
    assert_int_equal((strchr(p, '\n') - p) % 3, 0);
    assert_in_range(strchr(p, '\n') - p, PROMPT_PLAIN_FEEDBACK - 3, PROMPT_PLAIN_FEEDBACK);
    free(p);
    p = prompt_feedback(PROMPT_FULL, text, NULL);
    assert_non_null(strstr(p, text));
    free(p);
    memset(text, 'a', sizeof text);
    text[300] = '\n', text[sizeof text - 1] = 0;
    p = prompt_feedback(PROMPT_PLAIN, text, NULL);
    assert_int_equal(strchr(p, '\n') - p, 300);
    assert_string_equal(p + 300, "\nFix ModelNew.");
    free(p);
}

static void conversation_grows_in_order(void **state)
{
    json_t *m = prompt_start("do");
    static const char *const roles[] = {"user", "assistant", "user"};

    prompt_turn(m, PROMPT_PLAIN, "bad \xff", "compile_error", NULL);
    assert_int_equal(json_array_size(m), 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(json_str(json_array_get(m, i), "role", ""), roles[i]);
    assert_string_equal(json_str(json_array_get(m, 1), "content", ""), "bad \xef\xbf\xbd");
    json_decref(m);
}

static void style_names(void **state)
{
    enum prompt_style s = PROMPT_PLAIN;
    struct err e = ERR_INIT;

    assert_int_equal(prompt_style_parse("full", &s, &e), 0);
    assert_int_equal(s, PROMPT_FULL);
    assert_int_equal(prompt_style_parse("terse", &s, &e), -1);
    assert_int_equal(prompt_style_parse(NULL, &s, &e), -1);
    assert_string_equal(prompt_style_name(PROMPT_PLAIN), "plain");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_has_every_part),       cmocka_unit_test(plain_is_one_line_and_the_code),
                                       cmocka_unit_test(blanks_at_line_ends_are_not_shown),
        cmocka_unit_test(feedback_is_cut_at_boundaries), cmocka_unit_test(conversation_grows_in_order),
        cmocka_unit_test(style_names),               cmocka_unit_test(wordings_ask_for_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
