/* test_image.c - initialised data of an image is counted; what is no image, or a broken one, counts nothing and harms
 * nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "exec/player.h"

static volatile char table[100000] = {1}; /* of this program, which is an image as good as any */

static void test_a_table_counts(void **state)
{
    struct err e = ERR_INIT;
    struct buf b;
    struct image im = {0};

    (void)state;
    buf_init(&b, 1u << 28);
    assert_int_equal(file_read("/proc/self/exe", &b, &e), 0);
    im.p = b.p, im.n = b.n;
    assert_true(image_constants(&im) >= sizeof table);
    assert_true(image_constants(&im) < sizeof table + 65536);
    assert_int_equal(table[0], 1);
    for (size_t n = 0; n < 4096; n++) { /* cut off anywhere */
        void *part = malloc(n ? n : 1);

        memcpy(part, b.p, n);
        im.p = part, im.n = n;
        assert_int_equal(image_constants(&im), 0);
        free(part);
    }
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_table_counts)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
