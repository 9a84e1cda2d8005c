/* hostflow.c - see hostflow.h: records are parsed into fields, matched with those of other calls; what is left is
 * paid. */
#include "eval/hostflow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define PHRASE 8     /* bytes for "go on at that record" */
#define MAX_FIELD ((int64_t)1 << 40)
#define MAX_TRIES 32 /* records of one name that are looked at for the nearest */

/* ---- records ---- */

struct record {
    const char *text, *fields; /* fields: behind the name, "" if there are none */
    uint64_t whole, head;      /* hashes of the text, of kind and name */
};

struct list {
    struct record *v;
    size_t n;
};

static uint64_t hash(uint64_t h, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * 0x100000001b3ull;
    return h ^ h >> 29;
}

#define SEED 0xcbf29ce484222325ull

static struct list parse(const json_t *records)
{
    struct list l = {xcalloc(json_array_size(records) + 1, sizeof *l.v), json_array_size(records)};

    for (size_t i = 0; i < l.n; i++) {
        const char *s = json_string_value(json_array_get(records, i)), *end;

        s = s ? s : "?";
        end = s + strcspn(s, "\t");
        end += *end ? 1 + strcspn(end + 1, "\t") : 0;
        l.v[i] = (struct record){s, *end ? end + 1 : end, hash(SEED, s, strlen(s)), hash(SEED, s, (size_t)(end - s))};
    }
    return l;
}

/* ---- fields: "label:bytes=word.word" ---- */

struct field {
    const char *label, *words, *end;
    size_t n_label;
    int64_t bytes;
};

static bool next_field(const char **at, struct field *f)
{
    const char *colon, *equals;

    if (!**at)
        return false;
    f->label = *at;
    f->end = f->label + strcspn(f->label, "\t");
    *at = *f->end ? f->end + 1 : f->end;
    colon = memchr(f->label, ':', (size_t)(f->end - f->label));
    equals = colon ? memchr(colon, '=', (size_t)(f->end - colon)) : NULL;
    f->n_label = (size_t)((colon ? colon : f->end) - f->label);
    f->bytes = colon ? strtoll(colon + 1, NULL, 10) : 8;
    f->bytes = f->bytes < 0 || f->bytes > MAX_FIELD ? MAX_FIELD : f->bytes;
    f->words = equals ? equals + 1 : f->end;
    return true;
}

static int64_t count_words(const struct field *f)
{
    int64_t n = f->words < f->end;

    for (const char *p = f->words; p < f->end; p++)
        n += *p == '.';
    return n;
}

static bool next_word(const char **at, const char *end, const char **ret, size_t *ret_n)
{
    if (*at >= end)
        return false;
    *ret = *at;
    while (*at < end && **at != '.')
        (*at)++;
    *ret_n = (size_t)(*at - *ret);
    *at += *at < end;
    return true;
}

/* ---- a table from hash to hash ---- */

struct table {
    uint64_t *key, *value;
    size_t n, cap;
};

static size_t slot_of(const struct table *t, uint64_t key)
{
    size_t i = (size_t)(key * 0x9e3779b97f4a7c15ull >> 20) & (t->cap - 1);

    while (t->key[i] && t->key[i] != key)
        i = (i + 1) & (t->cap - 1);
    return i;
}

static void put(struct table *t, uint64_t key, uint64_t value)
{
    struct table old = *t;
    size_t i;

    key += !key;
    if (2 * (t->n + 1) > t->cap) {
        *t = (struct table){NULL, NULL, old.n, old.cap ? old.cap * 2 : 1024};
        t->key = xcalloc(t->cap, sizeof *t->key);
        t->value = xcalloc(t->cap, sizeof *t->value);
        for (i = 0; i < old.cap; i++)
            if (old.key[i]) {
                size_t k = slot_of(t, old.key[i]);
                t->key[k] = old.key[i], t->value[k] = old.value[i];
            }
        free(old.key);
        free(old.value);
    }
    i = slot_of(t, key);
    t->n += !t->key[i];
    t->key[i] = key, t->value[i] = value;
}

static bool get(const struct table *t, uint64_t key, uint64_t *ret)
{
    size_t i;

    key += !key;
    if (!t->cap || t->key[i = slot_of(t, key)] != key)
        return false;
    *ret = t->value[i];
    return true;
}

static void table_free(struct table *t)
{
    free(t->key);
    free(t->value);
}

/* ---- the price of one record beside another one of its name ---- */

struct pricing {
    struct table belief; /* (name, label, place, word) -> the word that it became */
    struct list l[3];    /* again, before, now */
    struct hostflow *out;
};

static void note_where(struct hostflow *out, const struct record *r, const char *label, size_t n)
{
    const char *name = r->text + strcspn(r->text, "\t"), *end;
    char *digits;
    long arg = n > 1 && label[0] == 'a' ? strtol(label + 1, &digits, 10) : -1;

    if (out->where[0])
        return;
    name += *name == '\t';
    end = name + strcspn(name, "\t");
    if (!strncmp(r->text, "launch\t", 7) && arg >= 0 && digits == label + n)
        snprintf(out->where, sizeof out->where, "argument %ld of kernel %.*s", arg, (int)(end - name), name);
    else if (!strncmp(r->text, "launch\t", 7))
        snprintf(out->where, sizeof out->where, "%.*s%slaunch of kernel %.*s", (int)n, label, n ? " of the " : "",
                 (int)(end - name), name);
    else if (!strncmp(r->text, "wrote\t", 6))
        snprintf(out->where, sizeof out->where, "what the host wrote to %.*s", (int)(end - name), name);
    else
        snprintf(out->where, sizeof out->where, "what %.*s was given", (int)(end - name), name);
}

/* Does the word continue what it did in two calls with equal values? Only words that changed there may. */
static bool continues(const char *a, size_t na, const char *b, size_t nb, const char *c, size_t nc)
{
    char *ea, *eb, *ec;
    uint64_t x, y, z;

    if (na == nb && !memcmp(a, b, na))
        return false;
    if ((nc == na && !memcmp(c, a, nc)) || (nc == nb && !memcmp(c, b, nc)))
        return true;
    x = strtoull(a, &ea, 16), y = strtoull(b, &eb, 16), z = strtoull(c, &ec, 16);
    return ea == a + na && eb == b + nb && ec == c + nc && z == 2 * y - x;
}

/* base: the field of the call before (or empty), older: of the one before that (or empty). */
static int64_t price_field(struct pricing *p, uint64_t head, const struct field *now, const struct field *base,
                           const struct field *older)
{
    int64_t k = count_words(now), each = k ? (now->bytes + k - 1) / k : 0, cost = 0;
    const char *at[3] = {now->words, base->words, older->words}, *w = "", *a = "", *o = "";
    size_t nw = 0, na = 0, no = 0;

    for (int64_t i = 0; next_word(&at[0], now->end, &w, &nw); i++) {
        bool has = next_word(&at[1], base->end, &a, &na), has_older = next_word(&at[2], older->end, &o, &no);
        uint64_t key, expected, got = hash(SEED, w, nw);

        if (has && has_older && continues(o, no, a, na, w, nw))
            continue;
        if (!has) {
            cost += each;
            continue;
        }
        key = hash(hash(head, now->label, now->n_label) + (uint64_t)i * 0x9e3779b97f4a7c15ull, a, na);
        if (!get(&p->belief, key, &expected))
            expected = hash(SEED, a, na);
        if (got == expected)
            continue;
        cost += each;
        put(&p->belief, key, got);
    }
    return cost;
}

static bool same_label(const struct field *a, const struct field *b)
{
    return a->n_label == b->n_label && !memcmp(a->label, b->label, a->n_label);
}

/* The field of that label, looked for from *at on; leaves *at behind it, or as it is. */
static struct field find_field(const char **at, const struct field *like)
{
    const char *p = *at;
    struct field f;

    while (next_field(&p, &f))
        if (same_label(&f, like)) {
            *at = p;
            return f;
        }
    return (struct field){"", "", "", 0, 0};
}

/* base and older may be NULL. */
static int64_t price(struct pricing *p, const struct record *now, const struct record *base, const struct record *older)
{
    const char *at = now->fields, *in_base = base ? base->fields : "", *in_older = older ? older->fields : "";
    int64_t cost = 0, part;
    struct field f;

    while (next_field(&at, &f)) {
        struct field b = find_field(&in_base, &f), o = find_field(&in_older, &f);

        part = price_field(p, now->head, &f, &b, &o);
        if (part)
            note_where(p->out, now, f.label, f.n_label);
        cost += part;
    }
    return cost;
}

/* ---- matching ---- */

struct place {
    int list; /* 0 again, 1 before, 2 this call itself */
    size_t at;
};

struct index {
    struct table first;  /* hash of a record -> its first place in the other calls */
    struct table mine;   /* -> its last place in this one: a loop goes on for ever from there */
    struct table heads;  /* of a name: a place in the other calls */
};

static uint64_t pack(struct place p)
{
    return (uint64_t)p.at << 2 | (uint64_t)p.list;
}

static struct place unpack(uint64_t v)
{
    return (struct place){(int)(v & 3), (size_t)(v >> 2)};
}

static const struct record *at_place(const struct pricing *p, struct place w)
{
    return w.list < 3 && w.at < p->l[w.list].n ? &p->l[w.list].v[w.at] : NULL;
}

/* The record of the older call that stands beside one of 'again', if it has the same name. */
static const struct record *beside(const struct pricing *p, struct place w)
{
    const struct record *r = w.list == 0 && w.at < p->l[1].n ? &p->l[1].v[w.at] : NULL;
    const struct record *base = at_place(p, w);

    return r && base && r->head == base->head ? r : NULL;
}

/* A record out of turn: *go becomes where to go on behind it. */
static int64_t out_of_turn(struct pricing *p, const struct index *x, const struct record *now, struct place *go)
{
    struct place w;
    uint64_t v;

    if (get(&x->mine, now->whole, &v) || get(&x->first, now->whole, &v)) {
        w = unpack(v);
        note_where(p->out, now, "", 0);
        *go = (struct place){w.list, w.at + 1};
        return PHRASE;
    }
    for (size_t k = 1; go->list == 0 && k <= MAX_TRIES && go->at + k < p->l[0].n; k++)
        if (p->l[0].v[go->at + k].head == now->head) { /* something was left out */
            w = (struct place){0, go->at + k};
            *go = (struct place){0, w.at + 1};
            return PHRASE + price(p, now, at_place(p, w), beside(p, w));
        }
    note_where(p->out, now, "", 0);
    if (get(&x->heads, now->head, &v))
        return PHRASE + price(p, now, at_place(p, unpack(v)), NULL);
    return PHRASE + price(p, now, NULL, NULL);
}

void hostflow_novelty(const json_t *before, const json_t *again, const json_t *now, struct hostflow *ret)
{
    struct pricing p = {.l = {parse(again), parse(before), parse(now)}, .out = ret};
    struct place go = {0, 0};
    struct index x = {0};

    *ret = (struct hostflow){.records = (int64_t)p.l[2].n};
    for (int k = 1; k >= 0; k--)
        for (size_t i = p.l[k].n; i-- > 0;) { /* the first occurrence stays, of the nearer call */
            put(&x.first, p.l[k].v[i].whole, pack((struct place){k, i}));
            put(&x.heads, p.l[k].v[i].head, pack((struct place){k, i}));
        }
    for (size_t i = 0; i < p.l[2].n; i++) {
        const struct record *r = &p.l[2].v[i], *base = at_place(&p, go);

        if (base && base->head == r->head) { /* equal ones too: a word that became another one ought to again */
            ret->novel += price(&p, r, base, beside(&p, go));
            go.at++;
        } else {
            ret->novel += out_of_turn(&p, &x, r, &go);
        }
        put(&x.mine, r->whole, pack((struct place){2, i}));
    }
    for (int k = 0; k < 3; k++)
        free(p.l[k].v);
    table_free(&p.belief);
    table_free(&x.first);
    table_free(&x.mine);
    table_free(&x.heads);
}

/* ---- the verdict ---- */

static int64_t few(int64_t bytes)
{
    return bytes / 1024 > HOSTFLOW_FEW ? bytes / 1024 : HOSTFLOW_FEW;
}

bool hostflow_convicts(const struct hostflow *f, int64_t read, int64_t inputs, int64_t outputs, char *text, size_t n)
{
    const char *where = f->where[0] ? f->where : "what the host gives to the device";

    if (f->novel > few(outputs))
        snprintf(text, n, "%s changes with the input's values (%" PRId64 " bytes in one call), shapes being equal: it "
                 "was computed on the host", where, f->novel);
    else if (f->novel > 16 && read > few(inputs)) /* up to 16 bytes may be a random seed */
        snprintf(text, n, "the host reads %" PRId64 " bytes of the device in forward, and %s changes with the input's "
                 "values: it was computed on the host", read, where);
    else
        return false;
    return true;
}
