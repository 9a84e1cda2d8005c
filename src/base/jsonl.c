/* jsonl.c - see jsonl.h. */
#include "base/jsonl.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/stamp.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"

#define SEAL_KEY "seal"
#define SEAL_DIGITS 32

/* ret: SEAL_DIGITS hex digits, the SHA-256 of v's members but the seal itself. */
static void jsonl_seal_of(const json_t *v, char ret[65])
{
    json_t *others = json_copy((json_t *)v);
    char *text;

    json_object_del(others, SEAL_KEY);
    text = json_text(others);
    sha256_hex(text, strlen(text), ret);
    ret[SEAL_DIGITS] = 0;
    free(text);
    json_decref(others);
}

bool jsonl_seal_fits(const json_t *v)
{
    const char *seal = json_str(v, SEAL_KEY, NULL);
    char hex[65];

    if (!seal)
        return true;
    jsonl_seal_of(v, hex);
    return !strcmp(seal, hex);
}

json_t *jsonl_sealed(const json_t *v)
{
    json_t *sealed = json_copy((json_t *)v);
    char hex[65];

    jsonl_seal_of(v, hex);
    json_object_set_new(sealed, SEAL_KEY, json_string(hex));
    return sealed;
}

int jsonl_append_sealed(const char *path, const json_t *v, struct err *e)
{
    json_t *sealed = jsonl_sealed(v);
    int rc = jsonl_append(path, sealed, e);

    json_decref(sealed);
    return rc;
}

/* A process that was killed in the middle of a line left it without an end; the next line must not be glued to it. */
static int jsonl_mend_last_line(const char *path, struct err *e)
{
    struct buf b;
    size_t whole;
    json_t *last;
    int rc;

    buf_init(&b, (size_t)1 << 33);
    rc = file_read(path, &b, e);
    for (whole = b.n; whole && b.p[whole - 1] != '\n';)
        whole--;
    if (rc == 0 && whole < b.n) {
        last = json_parse(b.p + whole, b.n - whole, path, NULL);
        if (last)
            rc = file_append(path, "\n", 1, e);
        else if (truncate(path, (off_t)whole) < 0)
            rc = err_sys(e, "cannot cut '%s'", path);
        else
            log_warn("'%s': the last line is unfinished and cut off", path);
        json_decref(last);
    }
    buf_free(&b);
    return rc;
}

struct jsonl_kept { /* the lines whose seal fits, and who wants them */
    struct buf lines;
    size_t dropped;
    int (*f)(json_t *v, size_t line, void *ctx, struct err *e);
    void *ctx;
};

/* A callback of the reader: keeps a line whose seal fits and hands it on; another one is counted as dropped. */
static int jsonl_keep_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    struct jsonl_kept *k = ctx;

    if (!jsonl_seal_fits(v)) {
        k->dropped++;
        return 0;
    }
    json_line(&k->lines, v);
    return k->f(v, line, k->ctx, e);
}

int jsonl_continue(const char *path, int (*f)(json_t *, size_t, void *, struct err *), void *ctx, struct err *e)
{
    struct jsonl_kept k = {.f = f, .ctx = ctx};
    int rc;

    if (stamp_check_links(path, e) < 0)
        return -1;
    if (!file_exists(path))
        return 0;
    buf_init(&k.lines, (size_t)1 << 40);
    rc = jsonl_mend_last_line(path, e) < 0 ? -1 : jsonl_each(path, jsonl_keep_line, &k, e);
    if (rc == 0 && k.dropped) {
        log_warn("'%s': %zu line%s altered since they were written, and dropped", path, k.dropped,
                 k.dropped > 1 ? "s are" : " is");
        rc = file_write(path, k.lines.p, k.lines.n, e);
    }
    buf_free(&k.lines);
    return rc;
}
