/* test_mend.c - repairs by lines: the kernel is listed as the judge numbers it, edits turn one program into the other
 * and back, and what is no edit of a line that is there changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/rng.h"
#include "task/repair_text.h"
#include "task/prompt.h"

#define HEAD "import torch\ndoc = '''no kernel'''\ns = r\"\"\"\n#include <cuda_runtime.h>\n\n"
#define TAIL "\"\"\"\nclass ModelNew(nn.Module):\n    pass\n"
#define KERNEL "__global__ void k(float *y) {\n    int i = threadIdx.x;\n    y[i] = 1;\n}\n"

static char *fenced(const char *program)
{
    return xasprintf("Words.\n```python\n%s```", program);
}

static void lines_have_the_judges_numbers(void **state)
{
    (void)state;
    char *response = fenced(HEAD KERNEL TAIL), *list = mend_listing(response);

    // Line 1 stands behind the quotes, 2 is an #include, 3 is blank.
    assert_string_equal(list, "4 | __global__ void k(float *y) {\n5 |     int i = threadIdx.x;\n6 |     y[i] = 1;\n"
                              "7 | }\nline 11 | class ModelNew(nn.Module):\nline 12 |     pass\n");
    assert_null(mend_listing("no program"));
    assert_null(mend_listing("```python\ns = '''x'''\nclass ModelNew: pass\n```"));
    free(response), free(list);
}

static void expect_edits(const char *fixed_kernel, const char *want)
{
    char *fixed = xasprintf("%s%s%s", HEAD, fixed_kernel, TAIL), *edits = mend_edits(HEAD KERNEL TAIL, fixed, 3);
    char *response = fenced(HEAD KERNEL TAIL), *written, *whole = xasprintf("```python\n%s```", fixed);

    assert_non_null(edits);
    assert_string_equal(edits, want);
    written = mend_apply(response, edits);
    assert_non_null(written);
    assert_string_equal(written, whole);
    free(fixed), free(edits), free(response), free(written), free(whole);
}

static void edits_say_what_changes(void **state)
{
    (void)state;
    expect_edits("__global__ void k(float *y) {\n    int i = threadIdx.x;\n    y[i] = 2;\n}\n", "6 |     y[i] = 2;\n");
    expect_edits("__global__ void k(float *y) {\n    int i = threadIdx.x;\n    int j;\n    y[i] = 1;\n}\n",
                 "6 |     int j;\n6 |     y[i] = 1;\n");
    expect_edits("__global__ void k(float *y) {\n    y[i] = 1;\n}\n", "5 |\n");
    expect_edits("__global__ void k(float *y) {\n    int j;\n    int i = 0;\n    y[i] = 1;\n}\n",
                 "5 |     int j;\n5 |     int i = 0;\n");
    expect_edits("__global__ void k(float *y) {\n    int i = 0;\n}\n", "5 |     int i = 0;\n6 |\n");
    assert_null(mend_edits(HEAD KERNEL TAIL, HEAD KERNEL TAIL, 3));                         // nothing to change
    assert_null(mend_edits(HEAD KERNEL TAIL, HEAD "__global__\n" TAIL, 3));                 // too much
    assert_null(mend_edits(HEAD KERNEL TAIL, "x = 1\n" HEAD KERNEL TAIL, 3));               // above it
    assert_null(mend_edits("no kernel", HEAD KERNEL TAIL, 3));
}

/* The class below the kernel has the program's numbers; both parts may change at once. */
static void edits_reach_the_class(void **state)
{
    (void)state;
    static const char fixed[] = HEAD "__global__ void k(float *y) {\n    int i = 0;\n    y[i] = 1;\n}\n"
                                     "\"\"\"\nclass ModelNew(nn.Module):\n    x = 1\n    y = 2\n";
    char *edits = mend_edits(HEAD KERNEL TAIL, fixed, 3), *response = fenced(HEAD KERNEL TAIL);
    char *written = mend_apply(response, edits), *whole = xasprintf("```python\n%s```", fixed);

    assert_string_equal(edits, "5 |     int i = 0;\nline 12 |     x = 1\nline 12 |     y = 2\n");
    assert_string_equal(written, whole);
    free(edits), free(written), free(whole);
    assert_null(mend_edits(HEAD KERNEL TAIL, fixed, 2));
    assert_null(mend_apply(response, "line 10 | x = 1\n")); // it holds the quotes
    assert_null(mend_apply(response, "12 | x = 1\n"));
    free(response);
}

/* Random programs of few different lines: whatever differs, the edits lead there. */
static void edits_lead_from_any_to_any(void **state)
{
    (void)state;
    struct rng r;
    int applied = 0;

    rng_seed(&r, 5, 1);
    for (int round = 0; round < 3000; round++) {
        char *p[2], *edits, *response, *written, *whole;

        for (int k = 0; k < 2; k++) {
            struct buf b;

            buf_init(&b, 1 << 16);
            buf_adds(&b, HEAD "__global__\n");
            for (int n = (int)rng_below(&r, 6); n > 0; n--)
                buf_addf(&b, "%*sline %d\n", (int)rng_below(&r, 3), "", (int)rng_below(&r, 3));
            buf_adds(&b, TAIL);
            for (int n = (int)rng_below(&r, 3); n > 0; n--)
                buf_addf(&b, "line %d |\n", (int)rng_below(&r, 3));
            p[k] = buf_detach(&b);
        }
        edits = mend_edits(p[0], p[1], 100);
        assert_int_equal(edits != NULL, strcmp(p[0], p[1]) != 0);
        response = fenced(p[0]), whole = xasprintf("```python\n%s```", p[1]);
        written = edits ? mend_apply(response, edits) : NULL;
        if (edits && (!written || strcmp(written, whole)))
            fail_msg("from\n%s\nto\n%s\nby\n%s\ngives\n%s", p[0], p[1], edits, written ? written : "nothing");
        applied += edits != NULL;
        free(p[0]), free(p[1]), free(edits), free(response), free(written), free(whole);
    }
    assert_true(applied > 1000);
}

static void what_is_no_edit_changes_nothing(void **state)
{
    (void)state;
    char *response = fenced(HEAD KERNEL TAIL), *whole = fenced(HEAD "__global__\n" TAIL), *one;
    static const char *const no[] = {"I do not know.", "0 | x\n", "99 | x\n", "6 | x\n99 | x\n", "6 | \"\"\"\n",
                                     "6 x\n", "| x\n", "12345678901 | x\n"};

    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_null(mend_apply(response, no[i]));
    assert_null(mend_apply(response, whole)); // it stands for itself
    assert_null(mend_apply("no program", "6 | x\n"));
    one = mend_apply(response, "It is line 6:\n```\n6|y[i] = 3;\n```\nThat is all.\n");
    assert_non_null(one);
    assert_non_null(strstr(one, "\n    int i = threadIdx.x;\ny[i] = 3;\n}\n"));
    free(response), free(whole), free(one);
}

static void feedback_ends_with_the_lines(void **state)
{
    (void)state;
    char *response = fenced(HEAD KERNEL TAIL), *p = prompt_feedback(PROMPT_PLAIN, "Wrong.", response), *q;

    assert_string_equal(p, "Wrong.\n4 | __global__ void k(float *y) {\n5 |     int i = threadIdx.x;\n"
                           "6 |     y[i] = 1;\n7 | }\nline 11 | class ModelNew(nn.Module):\nline 12 |     pass\n"
                           "Fix the lines.");
    free(p);
    p = prompt_feedback(PROMPT_PLAIN, "Wrong.", "no program"), q = prompt_feedback(PROMPT_PLAIN, "Wrong.", NULL);
    assert_string_equal(p, q);
    free(p), free(q);
    p = prompt_feedback(PROMPT_FULL, "Wrong.", response);
    assert_non_null(strstr(p, "each as 'NUMBER | line'"));
    free(p), free(response);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_have_the_judges_numbers), cmocka_unit_test(edits_say_what_changes),
        cmocka_unit_test(edits_reach_the_class),
        cmocka_unit_test(edits_lead_from_any_to_any), cmocka_unit_test(what_is_no_edit_changes_nothing),
        cmocka_unit_test(feedback_ends_with_the_lines)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
