/* test_bdr.c - the retry buffer against a plain array that shifts; persistence; draw rate. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/json.h"
#include "objective/bdr.h"

static void against_shifting_array(void **state)
{
    (void)state;
    int model[5], n = 0, drawn = 0;
    struct bdr b;
    struct bdr_item it;
    struct rng g;
    char id[16];

    rng_seed(&g, 4, 0);
    bdr_init(&b, 5);
    for (int i = 0; i < 5000; i++) {
        if (rng_below(&g, 2)) {
            snprintf(id, sizeof id, "%d", i);
            bdr_push(&b, id, "code", "error");
            if (n == 5)
                memmove(model, model + 1, sizeof(int) * (size_t)--n);
            model[n++] = i;
        } else if (bdr_draw(&b, 0.7, &g, &it)) {
            snprintf(id, sizeof id, "%d", model[0]);
            assert_string_equal(it.prompt_id, id);
            memmove(model, model + 1, sizeof(int) * (size_t)--n);
            bdr_item_free(&it);
            drawn++;
        }
        assert_int_equal(b.n, n);
    }
    assert_true(drawn > 500);
    bdr_free(&b);
}

static void draw_rate_and_stream(void **state)
{
    (void)state;
    struct bdr b, empty;
    struct bdr_item it;
    struct rng g, h;
    int hits = 0;

    bdr_init(&b, 4);
    bdr_init(&empty, 4);
    rng_seed(&g, 1, 2);
    h = g;
    for (int i = 0; i < 20000; i++) {
        bdr_push(&b, "p", "c", "e");
        if (bdr_draw(&b, BDR_PROBABILITY, &g, &it)) {
            hits++;
            bdr_item_free(&it);
        }
        assert_false(bdr_draw(&empty, 1, &h, &it));
    }
    assert_true(abs(hits - 2000) < 200);                // five standard deviations are 212
    assert_memory_equal(&g, &h, sizeof g);              // one uniform per call, whatever the content
    bdr_free(&b);
    bdr_free(&empty);
}

static void saved_state(void **state)
{
    (void)state;
    struct bdr b, c;
    struct err e = ERR_INIT;
    struct rng g, h;
    struct bdr_item x, y;
    char id[16];

    bdr_init(&b, 3);
    bdr_init(&c, 3);
    for (int i = 0; i < 8; i++) {
        snprintf(id, sizeof id, "%d", i);
        bdr_push(&b, id, "line\n\"quoted\"", "\xc3\xa9");
    }
    json_t *s = bdr_save(&b);
    char *text = json_text(s);
    json_t *back = json_parse(text, strlen(text), "state", &e);
    assert_int_equal(bdr_load(&c, back, &e), 0);
    rng_seed(&g, 1, 1);
    h = g;
    for (int i = 0; i < 3; i++) {
        assert_true(bdr_draw(&b, 1, &g, &x) && bdr_draw(&c, 1, &h, &y));
        assert_string_equal(x.prompt_id, y.prompt_id);
        assert_string_equal(x.response, y.response);
        assert_string_equal(x.feedback, y.feedback);
        bdr_item_free(&x);
        bdr_item_free(&y);
    }
    assert_int_equal(b.n, 0);
    json_t *bad = json_pack("{s:[{s:s}]}", "items", "prompt_id", "1");
    assert_int_equal(bdr_load(&c, bad, &e), -1);
    assert_int_equal(bdr_load(&c, NULL, &e), -1);
    json_decref(bad);
    json_decref(s);
    json_decref(back);
    free(text);
    bdr_free(&b);
    bdr_free(&c);
}

/* Repairs that never pass shut the gate, one pass in a window of them opens it, and the state survives. */
static void gate(void **state)
{
    (void)state;
    struct bdr b, c;
    struct err e = ERR_INIT;
    json_t *s;

    bdr_init(&b, 3);
    bdr_init(&c, 3);
    for (int i = 0; i < BDR_WINDOW; i++) {
        assert_true(bdr_open(&b, 0.1));
        bdr_note(&b, 0, 8);
    }
    assert_false(bdr_open(&b, 0.1));
    assert_true(bdr_open(&b, 0));
    s = bdr_save(&b);
    assert_int_equal(bdr_load(&c, s, &e), 0);
    assert_false(bdr_open(&c, 0.1));
    bdr_note(&c, 4, 8); // 4 of 32
    assert_true(bdr_open(&c, 0.1));
    for (int i = 0; i < BDR_WINDOW; i++)
        bdr_note(&c, 0, 8);
    assert_false(bdr_open(&c, 0.1));
    json_decref(s);
    bdr_free(&b);
    bdr_free(&c);
}

static void no_room(void **state)
{
    (void)state;
    struct bdr b;

    bdr_init(&b, 0);
    bdr_push(&b, "1", "c", "e");
    assert_int_equal(b.n, 0);
    bdr_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_shifting_array), cmocka_unit_test(draw_rate_and_stream),
                                       cmocka_unit_test(saved_state), cmocka_unit_test(no_room),
                                       cmocka_unit_test(gate)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
