/* test_pack.c - packed micro-batches: targets and borders, position by position. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "train/pack.h"

static void two_sequences(void **state)
{
    (void)state;
    int32_t a[] = {10, 11, 12, 13, 14}, b[] = {20, 21, 22};
    struct pack p;

    pack_init(&p, 8);
    assert_true(pack_add(&p, &(struct pack_seq){a, 5, 2, .to = 5}, 7));
    assert_true(pack_add(&p, &(struct pack_seq){b, 3, 1, .to = 2}, 9));
    assert_false(pack_add(&p, &(struct pack_seq){b, 3, 1, .to = 2}, 10)); // full
    const int32_t tokens[] = {10, 11, 12, 13, 14, 20, 21, 22}, targets[] = {-1, 12, 13, 14, -1, 21, -1, -1};
    assert_memory_equal(p.tokens, tokens, sizeof tokens);
    assert_memory_equal(p.targets, targets, sizeof targets);
    struct train_batch t = pack_batch(&p, 0.5);
    assert_int_equal(t.n_seq, 2);
    assert_int_equal(t.cu_seqlens[0], 0);
    assert_int_equal(t.cu_seqlens[1], 5);
    assert_int_equal(t.cu_seqlens[2], 8);
    assert_true(t.temperature == 0.5f);
    // The k-th predicted token of a sequence sits at start + k.
    assert_int_equal(p.start[0], 1);
    assert_int_equal(p.start[1], 5);
    assert_int_equal(p.seq[0], 7);
    assert_int_equal(p.seq[1], 9);
    pack_clear(&p);
    assert_true(pack_add(&p, &(struct pack_seq){b, 3, 1, .to = 3}, 0));
    assert_int_equal(p.n_tokens, 3);
    assert_false(pack_add(&p, &(struct pack_seq){tokens, 6, 1, .to = 2}, 1));
    pack_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_sequences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
