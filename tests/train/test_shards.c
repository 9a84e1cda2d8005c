/* test_shards.c - records in shards: a folder is its files in order, however many threads read them; what cannot be
 * read is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "../lib/tiny.h"
#include "train/data.h"
#include "train/shards.h"

enum { READERS = 3 };

static struct tokenizer *tok[READERS];

/* Lines [from, to) of data.jsonl into a file. */
static void write_shard(const char *name, size_t from, size_t to)
{
    char *all = tiny_path("data.jsonl"), *path = tiny_path(name);
    struct buf b;
    struct err e = ERR_INIT;

    buf_init(&b, BUF_MAX_TEXT);
    tiny_must(file_read(all, &b, &e), &e);
    char *p = b.p, *start = NULL;
    for (size_t i = 0; i < to; i++, p = strchr(p, '\n') + 1)
        start = i == from ? p : start;
    tiny_must(file_write(path, start, (size_t)(p - start), &e), &e);
    buf_free(&b);
    free(all), free(path);
}

static int add_all(struct dataset *d, const char *spec, int readers, struct err *e)
{
    char **files;
    size_t n;
    int rc = shards_list(spec, &files, &n, NULL, e);

    if (rc < 0)
        return -1;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = dataset_add(d, files[i], tok, readers, 1000, e);
    names_free(files, n);
    return rc;
}

static void same(const struct dataset *a, const struct dataset *b)
{
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->n_kinds, b->n_kinds);
    for (int i = 0; i < a->n_kinds; i++)
        assert_string_equal(a->kinds[i], b->kinds[i]);
    for (size_t i = 0; i < a->n; i++) {
        const struct example *x = &a->ex[i], *y = &b->ex[i];
        assert_int_equal(x->n, y->n);
        assert_memory_equal(x->ids, y->ids, (size_t)x->n * sizeof *x->ids);
        assert_true(x->from == y->from && x->to == y->to && x->kind == y->kind && x->group == y->group);
    }
}

static void folder_is_its_files(void **state)
{
    (void)state;
    struct dataset whole = {0}, parts = {0};
    char *file = tiny_path("data.jsonl"), *dir = tiny_path("shards"), *list;
    struct err e = ERR_INIT;

    tiny_must(dir_make(dir, &e), &e);
    write_shard("shards/002.jsonl", 31, 40); // written out of order, read in order
    write_shard("shards/000.jsonl", 0, 7);
    write_shard("shards/001.jsonl", 7, 31);
    write_shard("shards/heldout-000.jsonl", 3, 9); // what synth holds out is not learned
    write_shard("shards/failed-000.jsonl", 3, 9); // nor what the judge convicted
    tiny_must(add_all(&whole, file, 1, &e), &e);
    assert_int_equal(whole.n, 40);
    assert_int_equal(whole.n_kinds, 2);
    for (int readers = 1; readers <= READERS; readers++) {
        tiny_must(add_all(&parts, dir, readers, &e), &e);
        same(&whole, &parts);
        dataset_free(&parts);
    }
    list = xasprintf("%s/000.jsonl,%s/001.jsonl,%s/002.jsonl", dir, dir, dir);
    tiny_must(add_all(&parts, list, 2, &e), &e);
    same(&whole, &parts);
    dataset_free(&parts), dataset_free(&whole);
    free(file), free(dir), free(list);
}

static void refused(const char *spec, const char *word)
{
    struct dataset d = {0};
    struct err e = ERR_INIT;

    assert_int_equal(add_all(&d, spec, READERS, &e), -1);
    if (!strstr(e.msg, word))
        fail_msg("'%s' does not name '%s'", e.msg, word);
    dataset_free(&d);
}

#define GOOD "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"assistant\",\"content\":\"y\"}]}\n"

static void named(void **state)
{
    (void)state;
    char *dir = tiny_path("odd"), *parquet = tiny_path("odd/a.parquet"), *bad = tiny_path("bad.jsonl"),
         *torn = tiny_path("torn.jsonl");
    struct dataset d = {0};
    struct err e = ERR_INIT;

    tiny_must(dir_make(dir, &e), &e);
    refused(dir, "holds no *.jsonl");
    tiny_must(file_write(parquet, "PAR1", 4, &e), &e);
    refused(parquet, "to_json");
    refused(dir, "a.parquet");
    refused("/nowhere/x.jsonl", "/nowhere/x.jsonl");
    static const char lines[] = GOOD "\n" GOOD "{\"messages\":[]}\n" GOOD "{\"messages\":\n"; // the first fault counts
    tiny_must(file_write(bad, lines, sizeof lines - 1, &e), &e);
    refused(bad, "bad.jsonl: line 4");
    static const char cut[] = GOOD GOOD "{\"messages\":[{\"ro";
    tiny_must(file_write(torn, cut, sizeof cut - 1, &e), &e);
    tiny_must(add_all(&d, torn, 2, &e), &e);
    assert_int_equal(d.n, 2);
    dataset_free(&d);
    // no end, but all there
    static const char whole[] = GOOD "{\"messages\":[{\"role\":\"assistant\",\"content\":\"z\"}]}";
    tiny_must(file_write(torn, whole, sizeof whole - 1, &e), &e);
    tiny_must(add_all(&d, torn, 2, &e), &e);
    assert_int_equal(d.n, 2);
    dataset_free(&d);
    free(dir), free(parquet), free(bad), free(torn);
}

/* What says no difficulty, or null as a teacher's records do, is not easy. */
static void difficulties(void **state)
{
    (void)state;
    static const char lines[] = GOOD "{\"difficulty\":null,\"messages\":[{\"role\":\"assistant\",\"content\":\"y\"}]}\n"
        "{\"difficulty\":7,\"messages\":[{\"role\":\"assistant\",\"content\":\"z\"}]}\n";
    char *path = tiny_path("difficulties.jsonl");
    struct dataset d = {0};
    struct err e = ERR_INIT;

    tiny_must(file_write(path, lines, sizeof lines - 1, &e), &e);
    tiny_must(add_all(&d, path, 1, &e), &e);
    assert_int_equal(d.ex[0].difficulty, DIFFICULTY_UNKNOWN);
    assert_int_equal(d.ex[1].difficulty, DIFFICULTY_UNKNOWN);
    assert_int_equal(d.ex[2].difficulty, 7);
    dataset_free(&d);
    free(path);
}

/* Blocks end in the middle of lines, and one line is longer than a block. */
static int sum_lines(void *ctx, const struct shard_line *lines, size_t n, struct err *e)
{
    size_t *sum = ctx;

    for (size_t i = 0; i < n; i++) {
        assert_int_equal(lines[i].number, sum[0] + 1);
        assert_int_equal(strlen(lines[i].p), lines[i].n);
        sum[0]++;
        sum[1] += lines[i].n;
    }
    return 0;
}

static void blocks(void **state)
{
    (void)state;
    char *path = tiny_path("long.jsonl");
    size_t want = 0, sum[2] = {0};
    struct err e = ERR_INIT;
    FILE *f = fopen(path, "w");

    for (int i = 0; i < 60; i++) {
        size_t n = i == 30 ? (size_t)40 << 20 : 900001u + 7u * (unsigned)i;
        char *line = xmalloc(n);
        memset(line, 'a' + i % 26, n);
        line[n - 1] = '\n';
        fwrite(line, 1, n, f);
        want += n - 1;
        free(line);
    }
    fclose(f);
    tiny_must(shards_each(path, sum_lines, sum, &e), &e);
    assert_int_equal(sum[0], 60);
    assert_int_equal(sum[1], want);
    remove(path);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(folder_is_its_files), cmocka_unit_test(named),
                                       cmocka_unit_test(difficulties),
                                       cmocka_unit_test(blocks)};
    struct err e = ERR_INIT;
    int rc;

    log_set_level(LOG_ERROR);
    tiny_make();
    char *init = tiny_path("init");
    for (int i = 0; i < READERS; i++)
        tiny_must((tok[i] = tokenizer_load(init, &e)) ? 0 : -1, &e);
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < READERS; i++)
        tokenizer_free(tok[i]);
    free(init);
    tiny_remove();
    return rc;
}
