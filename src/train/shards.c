/* shards.c - see shards.h. */
#include "train/shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "store/content.h"

#define BLOCK ((size_t)16 << 20)

struct shards_files {
    char **v;
    size_t n;
    uint64_t bytes;
};

/* ERR_INPUT with the command that converts the file. Always -1. */
static int shards_refuse_parquet(const char *path, struct err *e)
{
    return err_set(e, ERR_INPUT, "'%s' is Parquet, which is not read; make JSON Lines of it: python3 -c \"import "
                                 "pandas; "
                                 "pandas.read_parquet('%s').to_json('data.jsonl', orient='records', lines=True)\"",
                                 path, path);
}

/* Adds a file; takes path. */
static int shards_add_file(struct shards_files *f, char *path, struct err *e)
{
    struct stat st;

    f->v = xrealloc(f->v, (f->n + 1) * sizeof *f->v);
    f->v[f->n++] = path;
    if (text_ends(path, ".parquet"))
        return shards_refuse_parquet(path, e);
    if (stat(path, &st) < 0)
        return err_sys(e, "cannot read '%s'", path);
    f->bytes += (uint64_t)st.st_size;
    return 0;
}

/* Adds the folder's *.jsonl. ERR_INPUT: it has none. */
static int shards_add_folder(struct shards_files *f, const char *dir, struct err *e)
{
    size_t n, before = f->n;
    char **names;
    int rc = dir_list(dir, &names, &n, e);

    if (rc < 0)
        return -1;
    for (size_t i = 0; i < n && rc == 0; i++)
        if (content_is_of_records(names[i]))
            rc = shards_add_file(f, path_join(dir, names[i]), e);
    names_free(names, n);
    if (rc == 0 && f->n == before)
        rc = err_set(e, ERR_INPUT, "folder '%s' holds no *.jsonl", dir);
    return rc;
}

int shards_list(const char *spec, char ***ret_files, size_t *ret_n, uint64_t *ret_bytes, struct err *e)
{
    char *list = xstrdup(spec), *save = NULL;
    struct shards_files f = {0};
    int rc = 0;

    for (char *p = strtok_r(list, ",", &save); p && rc == 0; p = strtok_r(NULL, ",", &save))
        rc = file_is_dir(p) ? shards_add_folder(&f, p, e) : shards_add_file(&f, xstrdup(p), e);
    free(list);
    if (rc < 0) {
        names_free(f.v, f.n);
        return -1;
    }
    *ret_files = f.v;
    *ret_n = f.n;
    if (ret_bytes)
        *ret_bytes = f.bytes;
    return 0;
}

/* ---- lines ---- */

struct shards_reader {
    char *text;
    size_t n, cap, line;
    struct shard_line *lines;
    size_t n_lines, cap_lines;
};

/* Adds a line that is not empty. */
static void shards_add_line(struct shards_reader *r, const char *p, size_t n)
{
    r->line++;
    if (strspn(p, " \t\r\n") >= n)
        return;
    if (r->n_lines == r->cap_lines)
        r->lines = xrealloc(r->lines, (r->cap_lines = r->cap_lines ? 2 * r->cap_lines : 1024) * sizeof *r->lines);
    r->lines[r->n_lines++] = (struct shard_line){p, n, r->line};
}

/* Whole lines of the text; returns where the rest begins. */
static size_t shards_cut_lines(struct shards_reader *r)
{
    size_t at = 0;
    char *nl;

    r->n_lines = 0;
    while ((nl = memchr(r->text + at, '\n', r->n - at))) {
        *nl = 0;
        shards_add_line(r, r->text + at, (size_t)(nl - (r->text + at)));
        at = (size_t)(nl - r->text) + 1;
    }
    return at;
}

/* What stands behind the last end of a line, at the end of the file. */
static void shards_cut_tail(struct shards_reader *r, const char *file)
{
    json_t *v;

    r->n_lines = 0;
    r->text[r->n] = 0;
    if (r->n == 0 || strspn(r->text, " \t\r\n") >= r->n)
        return;
    if ((v = json_parse(r->text, r->n, file, NULL)))
        shards_add_line(r, r->text, r->n);
    else
        log_warn("'%s': the last line is incomplete and is skipped", file);
    json_decref(v);
}

int shards_each(const char *file, int (*f)(void *ctx, const struct shard_line *lines, size_t n, struct err *e),
                void *ctx, struct err *e)
{
    struct shards_reader r = {.cap = BLOCK, .text = xmalloc(BLOCK + 1)};
    FILE *in = fopen(file, "re");
    int rc = in ? 0 : err_sys(e, "cannot read '%s'", file);
    size_t got = 0;

    while (rc == 0 && (got = fread(r.text + r.n, 1, r.cap - r.n, in)) > 0) {
        r.n += got;
        size_t rest = shards_cut_lines(&r);
        if (r.n_lines)
            rc = f(ctx, r.lines, r.n_lines, e);
        memmove(r.text, r.text + rest, r.n - rest);
        r.n -= rest;
        if (r.n == r.cap) /* a line longer than a block */
            r.text = xrealloc(r.text, (r.cap *= 2) + 1);
    }
    if (rc == 0 && ferror(in))
        rc = err_sys(e, "cannot read '%s'", file);
    if (rc == 0) {
        shards_cut_tail(&r, file);
        if (r.n_lines)
            rc = f(ctx, r.lines, r.n_lines, e);
    }
    if (in)
        fclose(in);
    free(r.text);
    free(r.lines);
    return rc;
}
