/* test_content.c - a file is known by all of it; its hash is kept for as long as the file is as it was. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/content.h"
#include "store/seal.h"

static char *dir;

static int setup(void **state)
{
    struct err e = ERR_INIT;

    (void)state;
    log_set_level(LOG_ERROR);
    dir = dir_temp("content", &e);
    return dir && setenv("MUSACODER_CACHE_DIR", dir, 1) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    dir_remove(dir, NULL);
    free(dir);
    return 0;
}

static char *make(const char *name, off_t size)
{
    char *path = path_join(dir, name);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);

    assert_int_equal(ftruncate(fd, size), 0);
    close(fd);
    return path;
}

/* As a careful tool does, which gives a file its old time back. */
static void alter(const char *path, off_t at)
{
    int fd = open(path, O_WRONLY);
    struct stat s;

    assert_int_equal(fstat(fd, &s), 0);
    assert_int_equal(pwrite(fd, "x", 1, at), 1);
    assert_int_equal(futimens(fd, (struct timespec[]){s.st_atim, s.st_mtim}), 0);
    close(fd);
}

static void a_byte_amid_a_large_file_counts(void **state)
{
    char *path = make("large", (off_t)CONTENT_WHOLE + 1000), x[65], y[65];
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(content_digest(path, x, &e), 0);
    alter(path, 500000);
    assert_int_equal(content_digest(path, y, &e), 0);
    assert_string_not_equal(x, y);
    free(path);
}

/* The one entry below a folder of the cache; NULL while there is none. */
static char *entry_of(const char *folder)
{
    char **names, *found = NULL;
    size_t n;

    if (dir_list(folder, &names, &n, NULL) < 0)
        return NULL;
    for (size_t i = 0; i < n && !found; i++) {
        char *path = path_join(folder, names[i]);

        found = file_is_dir(path) ? entry_of(path) : xstrdup(path);
        free(path);
    }
    names_free(names, n);
    return found;
}

/* What is kept is seen by putting another hash there. It is kept once the file's last change is a while ago. */
static void hashes_are_kept_for_unchanged_files(void **state)
{
    static const char other[] = "0123456789012345678901234567890123456789012345678901234567890123";
    char *path = make("weights", 2 << 20), *folder = path_join(dir, "content"), x[65], y[65], *kept;
    struct err e = ERR_INIT;

    (void)state;
    do {
        assert_int_equal(content_hash_file(path, x, &e), 0);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    } while (!(kept = entry_of(folder)));
    assert_int_equal(seal_write(kept, &(struct seal_part){other, 64}, 1, &e), 0);
    assert_int_equal(content_hash_file(path, y, &e), 0);
    assert_string_equal(y, other);
    alter(path, 1 << 20);
    assert_int_equal(content_hash_file(path, y, &e), 0);
    assert_string_not_equal(y, other);
    assert_string_not_equal(y, x);
    free(kept), free(folder), free(path);
}

static void what_is_no_file_is_said(void **state)
{
    char *fifo = path_join(dir, "fifo"), x[65];
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(content_digest(fifo, x, &e), -1);
    assert_int_equal(e.kind, ERR_INPUT);
    assert_non_null(strstr(e.msg, "is no file"));
    free(fifo);
}

/* What somebody puts beside a model or beside records is read by nobody. */
static void what_is_not_read_does_not_count(void **state)
{
    static const char *const of_model[] = {"config.json", "model-00001-of-00002.safetensors",
                                           "model.safetensors.index.json", "merges.txt", "chat_template.jinja"};
    static const char *const not[] = {"README.md", "trainer_state.json", "notes.txt", "adapter.bin", ".json"};

    (void)state;
    for (size_t i = 0; i < sizeof of_model / sizeof *of_model; i++)
        assert_true(content_is_of_model(of_model[i]) && !content_is_of_records(of_model[i]));
    for (size_t i = 0; i < sizeof not / sizeof *not; i++)
        assert_false(content_is_of_model(not[i]) || content_is_of_records(not[i]));
    assert_true(content_is_of_records("train-00000.jsonl"));
    assert_false(content_is_of_records("heldout.jsonl") || content_is_of_records("failed-0.jsonl"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_read_does_not_count),
        cmocka_unit_test_setup_teardown(a_byte_amid_a_large_file_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(hashes_are_kept_for_unchanged_files, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_file_is_said, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
