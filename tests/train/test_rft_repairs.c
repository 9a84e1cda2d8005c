/* test_rft_repairs.c - a group's failures become dialogues where a sample that passed is a line away, and nothing else
 * does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "train/rft_repairs.h"

#define END "}\n\"\"\"\n\n\nclass ModelNew:\n    pass\n```"
#define PROGRAM(line) "```python\ns = r\"\"\"\n__global__ void k(float *y) {\n    " line "\n" END
#define FAR "```python\ns = r\"\"\"\n__global__ void k() {\n  a;\n  b;\n  c;\n  d;\n  e;\n  f;\n  g;\n  h;\n" END

enum { SAMPLES = 8 };

static void sample(struct rollout *r, const char *text, enum outcome_kind kind)
{
    r->turns = 1;
    r->passed_turn = kind == OUTCOME_PASSED;
    r->turn[0] = (struct rollout_turn){.kind = kind, .text = (char *)text, .feedback = "Wrong result."};
    strcpy(r->turn[0].category, kind == OUTCOME_PASSED ? "" : "correctness_error");
}

static const char *said(const json_t *list, size_t record, size_t message)
{
    const json_t *m = json_object_get(json_array_get(list, record), "messages");

    return json_str(json_array_get(m, message), "content", "");
}

static void failures_beside_a_success(void **state)
{
    (void)state;
    struct rollout r[SAMPLES] = {0};
    struct rollout_group g = {.r = r, .n = SAMPLES};
    struct prompt_item p = {.id = "p1", .messages = json_pack("[{s:s,s:s}]", "role", "user", "content", "ask")};
    struct rft_options o = {.repairs = true, .style = PROMPT_FULL, .seed = 5};
    json_t *list;

    sample(&r[0], PROGRAM("y[0] = 2;"), OUTCOME_FAILED);
    sample(&r[1], PROGRAM("y[0] = 1;"), OUTCOME_PASSED);
    sample(&r[2], PROGRAM("y[0] = 2;"), OUTCOME_FAILED); // said before
    sample(&r[3], FAR, OUTCOME_FAILED);
    sample(&r[4], PROGRAM("y[0] = 3;"), OUTCOME_INFRA); // no verdict
    sample(&r[5], PROGRAM("y[0] = 1;"), OUTCOME_FAILED); // a verdict of luck
    sample(&r[6], "no program", OUTCOME_FAILED);
    list = rft_repairs(&o, &p, &g); // r[7] was not drawn
    assert_int_equal(json_array_size(list), 1);
    assert_string_equal(json_str(json_array_get(list, 0), "kind", ""), "own");
    assert_string_equal(said(list, 0, 0), "ask");
    assert_string_equal(said(list, 0, 1), r[0].turn[0].text);
    assert_non_null(strstr(said(list, 0, 2), "Wrong result."));
    assert_non_null(strstr(said(list, 0, 2), "3 |     y[0] = 2;"));
    assert_string_equal(said(list, 0, 3), "3 |     y[0] = 1;\n");
    assert_int_equal(json_array_size(p.messages), 1);
    json_decref(list);
    o.repairs = false;
    list = rft_repairs(&o, &p, &g);
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
    o.repairs = true;
    sample(&r[1], FAR, OUTCOME_FAILED); // nothing passes
    list = rft_repairs(&o, &p, &g);
    assert_int_equal(json_array_size(list), 0);
    json_decref(list), json_decref(p.messages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(failures_beside_a_success)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
