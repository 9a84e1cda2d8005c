/* data.c - see data.h. */
#include "train/data.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "nn/chat.h"
#include "train/changed.h"

struct add_ctx {
    struct dataset *d;
    struct tokenizer *tok;
    const char *path;
    int max_len;
    size_t cap;
};

static int kind_index(struct dataset *d, const char *name, struct err *e)
{
    for (int i = 0; i < d->n_kinds; i++)
        if (!strcmp(d->kinds[i], name))
            return i;
    if (d->n_kinds == DATA_MAX_KINDS)
        return err_set(e, ERR_INPUT, "more than %d kinds of records; '%s' is one too many", DATA_MAX_KINDS, name);
    d->kinds[d->n_kinds] = xstrdup(name);
    return d->n_kinds++;
}

static int add_messages(struct chat *c, const json_t *messages, struct err *e)
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

static uint64_t group_of(const json_t *rec)
{
    const char *key = json_str(json_object_get(rec, "task"), "graph_hash", json_str(rec, "id", ""));

    return hash64(key, strlen(key), 0);
}

/* A dialogue with a response before the last one is a repair: what is new in it may weigh more. */
static uint8_t *mark_changes(const struct chat *c)
{
    const struct chat_span *s = c->responses + c->n_responses - 1, *old = s - 1;
    uint8_t *mask;

    if (c->n_responses < 2)
        return NULL;
    mask = xcalloc(s->to - s->from + 1, 1);
    changed_tokens(c->ids.v + old->from, old->to - old->from, c->ids.v + s->from, s->to - s->from, mask);
    return mask;
}

/* Only the ids that matter are kept: the "\n" behind the last <|im_end|> is never predicted. */
static int to_example(struct add_ctx *a, const json_t *rec, struct chat *c, struct example *ret, struct err *e)
{
    if (add_messages(c, json_object_get(rec, "messages"), e) < 0)
        return -1;
    if (c->n_responses == 0)
        return err_set(e, ERR_INPUT, "no assistant message to learn from");
    struct chat_span s = c->responses[c->n_responses - 1];
    ret->kind = kind_index(a->d, json_str(rec, "kind", "generate"), e);
    if (ret->kind < 0)
        return -1;
    ret->group = group_of(rec);
    ret->difficulty = (int)json_i64(rec, "difficulty", 0);
    ret->from = (int)s.from;
    ret->to = (int)s.to;
    ret->n = (int)s.to;
    ret->ids = xmalloc(s.to * sizeof *ret->ids);
    memcpy(ret->ids, c->ids.v, s.to * sizeof *ret->ids);
    ret->changed = mark_changes(c);
    return 0;
}

static int add_record(json_t *rec, size_t line, void *ctx, struct err *e)
{
    struct add_ctx *a = ctx;
    struct dataset *d = a->d;
    struct example ex = {0};
    struct chat c;
    int rc;

    if (chat_begin(&c, a->tok, CHAT_THINK_DEFAULT, e) < 0)
        return -1;
    rc = to_example(a, rec, &c, &ex, e);
    chat_free(&c);
    if (rc < 0)
        return err_prefix(e, "%s: line %zu", a->path, line);
    if (ex.n > a->max_len) {
        d->too_long++;
        free(ex.ids);
        free(ex.changed);
        return 0;
    }
    if (d->n == a->cap)
        d->ex = xrealloc(d->ex, (a->cap = a->cap ? 2 * a->cap : 1024) * sizeof *d->ex);
    d->ex[d->n++] = ex;
    return 0;
}

int dataset_add(struct dataset *d, const char *path, struct tokenizer *tok, int max_len, struct err *e)
{
    struct add_ctx a = {.d = d, .tok = tok, .path = path, .max_len = max_len, .cap = d->n};

    return jsonl_each(path, add_record, &a, e);
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

static int add_prompt(json_t *v, size_t line, void *ctx, struct err *e)
{
    struct prompt_ctx *a = ctx;
    json_t *info = json_object_get(v, "extra_info"), *messages = json_object_get(v, "prompt");
    const char *id = json_str(info, "name", NULL), *code = json_str(info, "task_code", NULL);

    if (!id || !code || json_array_size(messages) == 0)
        return err_set(e, ERR_INPUT, "%s: line %zu has no prompt, extra_info.name or extra_info.task_code", a->path, line);
    if (a->p->n == a->cap)
        a->p->items = xrealloc(a->p->items, (a->cap = a->cap ? 2 * a->cap : 256) * sizeof *a->p->items);
    a->p->items[a->p->n++] = (struct prompt_item){xstrdup(id), xstrdup(code), json_incref(messages), json_incref(info)};
    return 0;
}

int prompt_set_load(struct prompt_set *p, const char *path, struct err *e)
{
    struct prompt_ctx a = {.p = p, .path = path};

    *p = (struct prompt_set){0};
    if (jsonl_each(path, add_prompt, &a, e) < 0) {
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
