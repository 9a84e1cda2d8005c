/* verdict_log.c - the log's lines on disk, and their index in memory. Open addressing over (hash, offset); a hit is
 * checked against the line itself. */
#include "verdicts/verdict_log.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/mem.h"

struct verdict_log_slot {
    uint64_t hash; /* 0: free */
    int64_t offset;
};

struct verdict_log {
    char *path;
    FILE *f; /* for reading; NULL while there is no file */
    struct verdict_log_slot *slots;
    size_t cap, n, lines;
    int64_t end;
};

static uint64_t verdict_log_hash_of(const char *key)
{
    uint64_t h = hash64(key, strlen(key), 11);

    return h ? h : 1;
}

/* Puts a slot into a table of cap places. */
static void verdict_log_put_slot(struct verdict_log_slot *slots, size_t cap, struct verdict_log_slot s)
{
    size_t i = s.hash & (cap - 1);

    while (slots[i].hash)
        i = (i + 1) & (cap - 1);
    slots[i] = s;
}

/* Doubles the table and enters its slots anew. */
static void verdict_log_grow(struct verdict_log *l)
{
    size_t cap = l->cap ? 2 * l->cap : 1024;
    struct verdict_log_slot *slots = xcalloc(cap, sizeof *slots);

    for (size_t i = 0; i < l->cap; i++)
        if (l->slots[i].hash)
            verdict_log_put_slot(slots, cap, l->slots[i]);
    free(l->slots);
    l->slots = slots;
    l->cap = cap;
}

/* Indexes a line by its key. */
static void verdict_log_index_line(struct verdict_log *l, const char *key, int64_t offset)
{
    if (4 * (l->n + 1) > 3 * l->cap)
        verdict_log_grow(l);
    verdict_log_put_slot(l->slots, l->cap, (struct verdict_log_slot){verdict_log_hash_of(key), offset});
    l->n++;
    l->lines++;
}

/* One line without its end; new object, or NULL. */
static json_t *verdict_log_parse_line(const struct verdict_log *l, char *text, ssize_t n, struct err *e)
{
    json_t *v = json_parse(text, (size_t)(text[n - 1] == '\n' ? n - 1 : n), l->path, e);

    if (v && json_str(v, "key", NULL) && json_is_object(json_object_get(v, "verdict")))
        return v;
    json_decref(v);
    return NULL;
}

/* Indexes all lines; an unfinished last one is cut off. */
static int verdict_log_read_all(struct verdict_log *l, struct err *e)
{
    char *text = NULL;
    size_t cap = 0;
    ssize_t n;
    int rc = 0;

    while (rc == 0 && (n = getline(&text, &cap, l->f)) > 0) {
        json_t *v;

        if (text[n - 1] != '\n') {
            log_warn("'%s': the last line is unfinished and cut off", l->path);
            break;
        }
        if ((v = verdict_log_parse_line(l, text, n, NULL)) && jsonl_seal_fits(v))
            verdict_log_index_line(l, json_str(v, "key", ""), l->end);
        else if (v)
            log_warn("'%s': line %zu is altered since it was written; it is judged anew", l->path, ++l->lines);
        else
            rc = err_set(e, ERR_INPUT, "'%s': line %zu is no verdict log entry; remove the file to judge anew", l->path,
                         l->lines + 1);
        l->end += n;
        json_decref(v);
    }
    free(text);
    return rc == 0 && truncate(l->path, l->end) < 0 ? err_sys(e, "cannot cut '%s'", l->path) : rc;
}

int verdict_log_open(const char *path, struct verdict_log **ret, struct err *e)
{
    struct verdict_log *l = xcalloc(1, sizeof *l);
    int rc = 0;

    l->path = xstrdup(path);
    l->f = fopen(path, "re");
    if (l->f)
        rc = verdict_log_read_all(l, e);
    else if (errno != ENOENT)
        rc = err_sys(e, "cannot read '%s'", path);
    if (rc < 0)
        verdict_log_close(l);
    else
        *ret = l;
    return rc;
}

void verdict_log_close(struct verdict_log *l)
{
    if (!l)
        return;
    if (l->f)
        fclose(l->f);
    free(l->slots);
    free(l->path);
    free(l);
}

/* *ret is the record at that offset, new. */
static int verdict_log_read_at(struct verdict_log *l, int64_t offset, json_t **ret, struct err *e)
{
    char *text = NULL;
    size_t cap = 0;
    ssize_t n = -1;
    json_t *v = NULL;

    if (!l->f && !(l->f = fopen(l->path, "re")))
        return err_sys(e, "cannot read '%s'", l->path);
    if (fseeko(l->f, (off_t)offset, SEEK_SET) == 0 && (n = getline(&text, &cap, l->f)) > 0)
        v = verdict_log_parse_line(l, text, n, NULL);
    free(text);
    if (!v)
        return err_set(e, ERR_ENV, "'%s' changed while in use: no entry at byte %lld", l->path, (long long)offset);
    *ret = v;
    return 0;
}

int verdict_log_find(struct verdict_log *l, const char *key, json_t **ret_verdict, struct err *e)
{
    uint64_t h = verdict_log_hash_of(key);
    json_t *found = NULL, *v;
    int64_t at = -1;

    for (size_t i = l->cap ? h & (l->cap - 1) : 0; l->cap && l->slots[i].hash; i = (i + 1) & (l->cap - 1)) {
        if (l->slots[i].hash != h || l->slots[i].offset < at)
            continue;
        if (verdict_log_read_at(l, l->slots[i].offset, &v, e) < 0) {
            json_decref(found);
            return -1;
        }
        if (!strcmp(json_str(v, "key", ""), key)) {
            json_decref(found);
            at = l->slots[i].offset;
            found = json_incref(json_object_get(v, "verdict"));
        }
        json_decref(v);
    }
    if (found)
        *ret_verdict = found;
    return found != NULL;
}

int verdict_log_add(struct verdict_log *l, const char *key, const char *task, const json_t *verdict, struct err *e)
{
    json_t *line = json_pack("{s:s,s:s,s:O}", "key", key, "task", task, "verdict", (json_t *)verdict);
    struct stat st;
    int rc = jsonl_append_sealed(l->path, line, e);

    if (rc == 0 && stat(l->path, &st) < 0)
        rc = err_sys(e, "cannot look at '%s'", l->path);
    if (rc == 0) {
        verdict_log_index_line(l, key, l->end);
        l->end = st.st_size;
    }
    json_decref(line);
    return rc;
}

size_t verdict_log_count(const struct verdict_log *l)
{
    return l->lines;
}

size_t verdict_log_bytes(const struct verdict_log *l)
{
    return l->cap * sizeof *l->slots;
}
