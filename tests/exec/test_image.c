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

/* What -fsanitize=alignment notes of an access: file, line, column, type, alignment, kind. */
struct note {
    const char *file;
    uint32_t line, column;
    const void *type;
    uint8_t log_alignment, kind;
} __attribute__((aligned(32)));
static const char a_file[] = "a file", a_type[] = "a type";
static volatile struct note notes[4096] = {[0 ... 4095] = {a_file, 7, 3, a_type, 2, 1}};
static volatile struct note data[4096] = {[0 ... 4095] = {a_file, 0x12345678, 3, a_type, 2, 1}};

static uint64_t constants_of_me(void)
{
    struct err e = ERR_INIT;
    struct image im = {0};
    struct buf b;
    uint64_t n;

    buf_init(&b, 1u << 28);
    assert_int_equal(file_read("/proc/self/exe", &b, &e), 0);
    im.p = b.p, im.n = b.n;
    n = image_constants(&im);
    buf_free(&b);
    return n;
}

/* Notes are none of the program's data; what looks like one and holds more is. */
static void test_notes_of_checks_do_not_count(void **state)
{

    (void)state;
    assert_true(notes[1].line == 7 && data[1].line == 0x12345678);
    assert_true(constants_of_me() >= sizeof table + sizeof data);
    assert_true(constants_of_me() < sizeof table + sizeof data + 65536);
}

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
    assert_true(image_constants(&im) < sizeof table + sizeof data + 65536);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_table_counts),
                                       cmocka_unit_test(test_notes_of_checks_do_not_count)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
