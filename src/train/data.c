/* data.c - see data.h. */
#include "train/data.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "nn/chat.h"
#include "train/changed.h"
#include "train/shards.h"

struct add_ctx {
    struct dataset *d;
    struct tokenizer *const *tok; /* (n_tok) one a thread */
    int n_tok;
    const char *path;
    int max_len;
    size_t cap;
};

/* A line as it came: an example (ids NULL: too long), or why not. */
struct data_entry {
    struct example ex;
    char *kind;
    struct err err;
    int rc;
};

/* The kind's number, which is new where it must be. ERR_INPUT: there are too many. */
static int data_kind_index(struct dataset *d, const char *name, struct err *e)
{
    for (int i = 0; i < d->n_kinds; i++)
        if (!strcmp(d->kinds[i], name))
            return i;
    if (d->n_kinds == DATA_MAX_KINDS)
        return err_set(e, ERR_INPUT, "more than %d kinds of records; '%s' is one too many", DATA_MAX_KINDS, name);
    d->kinds[d->n_kinds] = xstrdup(name);
    return d->n_kinds++;
}

/* Adds a record's messages to the dialogue. ERR_INPUT: one has no role or content. */
static int data_add_messages(struct chat *c, const json_t *messages, struct err *e)
{
    const json_t *m;
    size_t i;

    json_array_foreach(messages, i, m) {
        const char *role = json_str(m, "role", NULL), *content = json_str(m, "content", NULL);

        if (!role || !content)
            return err_set(e, ERR_INPUT, "message %zu has no role or content", i);
        if (chat_message(c, role, content, strlen(content), e) < 0)
            return -1;
    }
    return 0;
}

/* A hash that is equal for records of one task. */
static uint64_t data_group_of(const json_t *rec)
{
    const char *key = json_str(json_object_get(rec, "task"), "graph_hash", json_str(rec, "id", ""));

    return hash64(key, strlen(key), 0);
}

/* A dialogue with a response before the last one is a repair: what is new in it may weigh more. An answer of a few
 * lines (less than half as long) is new as a whole, though a long program holds its tokens somewhere, in their
 * order. */
static uint8_t *data_mark_changes(const struct chat *c)
{
    const struct chat_span *s = c->responses + c->n_responses - 1, *old = s - 1;
    uint8_t *mask;

    if (c->n_responses < 2)
        return NULL;
    mask = xcalloc(s->to - s->from + 1, 1);
    if (2 * (s->to - s->from) < old->to - old->from)
        memset(mask, 1, s->to - s->from);
    else
        changed_tokens(c->ids.v + old->from, old->to - old->from, c->ids.v + s->from, s->to - s->from, mask);
    return mask;
}

/* Only the ids that matter are kept: the "\n" behind the last <|im_end|> is never predicted. */
static int data_to_example(const json_t *rec, struct chat *c, int max_len, struct data_entry *ret,
                           struct err *e)
{
    struct example *ex = &ret->ex;

    if (data_add_messages(c, json_object_get(rec, "messages"), e) < 0)
        return -1;
    if (c->n_responses == 0)
        return err_set(e, ERR_INPUT, "no assistant message to learn from");
    struct chat_span s = c->responses[c->n_responses - 1];
    ret->kind = xstrdup(json_str(rec, "kind", "generate"));
    if (s.to > (size_t)max_len)
        return 0;
    ex->group = data_group_of(rec);
    ex->difficulty = (int)json_i64(rec, "difficulty", DIFFICULTY_UNKNOWN);
    ex->from = (int)s.from;
    ex->to = (int)s.to;
    ex->n = (int)s.to;
    ex->ids = xmalloc(s.to * sizeof *ex->ids);
    memcpy(ex->ids, c->ids.v, s.to * sizeof *ex->ids);
    ex->changed = data_mark_changes(c);
    return 0;
}

/* Encodes one record; entries above max_len are marked. */
static int data_read_entry(struct tokenizer *tok, const struct shard_line *line, int max_len, struct data_entry *ret,
                           struct err *e)
{
    json_t *rec = json_parse(line->p, line->n, "record", e);
    struct chat c;
    int rc = -1;

    if (rec && chat_begin(&c, tok, CHAT_THINK_DEFAULT, e) == 0) {
        rc = data_to_example(rec, &c, max_len, ret, e);
        chat_free(&c);
    }
    json_decref(rec);
    return rc;
}

/* Takes over what the entry holds. */
static int data_add_entry(struct add_ctx *a, struct data_entry *x, size_t line, struct err *e)
{
    struct dataset *d = a->d;
    int kind = -1;

    if (x->rc == 0)
        kind = data_kind_index(d, x->kind, &x->err);
    free(x->kind);
    if (kind < 0) {
        *e = x->err;
        free(x->ex.ids);
        free(x->ex.changed);
        return err_prefix(e, "%s: line %zu", a->path, line);
    }
    x->ex.kind = kind;
    if (!x->ex.ids) {
        d->too_long++;
        return 0;
    }
    if (d->n == a->cap)
        d->ex = xrealloc(d->ex, (a->cap = a->cap ? 2 * a->cap : 1024) * sizeof *d->ex);
    d->ex[d->n++] = x->ex;
    return 0;
}

/* Lines become examples on all threads; they are added in their order, so that threads do not matter. */
static int data_add_lines(void *ctx, const struct shard_line *lines, size_t n, struct err *e)
{
    struct add_ctx *a = ctx;
    struct data_entry *x = xcalloc(n, sizeof *x);
    int rc = 0;

#pragma omp parallel for schedule(dynamic, 32) num_threads(a->n_tok) if (a->n_tok > 1)
    for (size_t i = 0; i < n; i++)
        x[i].rc = data_read_entry(a->tok[omp_get_thread_num()], &lines[i], a->max_len, &x[i], &x[i].err);
    for (size_t i = 0; i < n; i++)
        if (rc == 0) {
            rc = data_add_entry(a, &x[i], lines[i].number, e);
        } else {
            free(x[i].kind);
            free(x[i].ex.ids);
            free(x[i].ex.changed);
        }
    free(x);
    return rc;
}

int dataset_add(struct dataset *d, const char *path, struct tokenizer *const *tok, int n_tok, int max_len,
                struct err *e)
{
    struct add_ctx a = {.d = d, .tok = tok, .n_tok = n_tok, .path = path, .max_len = max_len, .cap = d->n};

    return shards_each(path, data_add_lines, &a, e);
}

void dataset_free(struct dataset *d)
{
    for (size_t i = 0; i < d->n; i++) {
        free(d->ex[i].ids);
        free(d->ex[i].changed);
    }
    for (int i = 0; i < d->n_kinds; i++)
        free(d->kinds[i]);
    free(d->ex);
    *d = (struct dataset){0};
}

struct prompt_ctx {
    struct prompt_set *p;
    const char *path;
    size_t cap;
};

/* A callback of jsonl_each: adds a prompt for RL. */
static int data_add_prompt(json_t *v, size_t line, void *ctx, struct err *e)
{
    struct prompt_ctx *a = ctx;
    json_t *info = json_object_get(v, "extra_info"), *messages = json_object_get(v, "prompt");
    const char *id = json_str(info, "name", NULL), *code = json_str(info, "task_code", NULL);

    if (!id || !code || json_array_size(messages) == 0)
        return err_set(e, ERR_INPUT, "%s: line %zu has no prompt, extra_info.name or extra_info.task_code", a->path,
                       line);
    if (a->p->n == a->cap)
        a->p->items = xrealloc(a->p->items, (a->cap = a->cap ? 2 * a->cap : 256) * sizeof *a->p->items);
    a->p->items[a->p->n++] = (struct prompt_item){xstrdup(id), xstrdup(code), json_incref(messages), json_incref(info)};
    return 0;
}

/* Reads a file of prompts; prompt_set_free frees *p. */
int prompt_set_load(struct prompt_set *p, const char *path, struct err *e)
{
    struct prompt_ctx a = {.p = p, .path = path};

    *p = (struct prompt_set){0};
    if (jsonl_each(path, data_add_prompt, &a, e) < 0) {
        prompt_set_free(p);
        return -1;
    }
    if (p->n == 0)
        return err_set(e, ERR_INPUT, "'%s' holds no prompts; make some with 'musacoder synth'", path);
    return 0;
}

void prompt_set_free(struct prompt_set *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->items[i].id);
        free(p->items[i].task_code);
        json_decref(p->items[i].messages);
        json_decref(p->items[i].info);
    }
    free(p->items);
    *p = (struct prompt_set){0};
}

const struct prompt_item *prompt_set_find(const struct prompt_set *p, const char *id)
{
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->items[i].id, id))
            return &p->items[i];
    return NULL;
}
