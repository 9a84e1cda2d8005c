/* sidecar.c - see sidecar.h. One table of keys per level; each key knows how to check and normalise its value.
 * sidecar_check_KEY returns the value as it is kept, new, or NULL with e. */
#include "task/sidecar.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"

#define NAME_MAX_CHARS 40
#define INPUTS_MAX 64
#define SIZE_MAX_VALUE ((int64_t)1 << 40)

static const char *const regimes[] = {"normal", "uniform", "signed", "large", "structured", "task", NULL};
static const char *const effects[] = {"inputs", "buffers", NULL};
static const char *const dtypes[] = {"float16", "bfloat16", "float32", "float64", NULL};
static const char *const layouts[] = {"contiguous", "transposed", "strided", "channels_last", NULL};

struct sidecar_where { /* for messages */
    const char *file;
    char place[64]; /* "", or "variant 'odd': " */
};

struct key {
    const char *name;
    json_t *(*check)(const json_t *v, const struct sidecar_where *w, struct err *e); /* v is not null; new reference */
};

/* As nearest_word asks for words: word i, NULL behind the last one. */
static const char *sidecar_word_at(const void *ctx, int i)
{
    return ((const char *const *)ctx)[i];
}

/* As nearest_word asks for words: the name of key i. */
static const char *sidecar_key_at(const void *ctx, int i)
{
    return ((const struct key *)ctx)[i].name;
}

static json_t *sidecar_refuse(const struct sidecar_where *w, struct err *e, const char *fmt,
                              ...) __attribute__((format(printf, 3, 4)));

/* ERR_INPUT that names file and variant. Always NULL. */
static json_t *sidecar_refuse(const struct sidecar_where *w, struct err *e, const char *fmt, ...)
{
    char msg[600];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    err_set(e, ERR_INPUT, "'%s': %s%s", w->file, w->place, msg);
    return NULL;
}

/* "no layout 'transpose'; did you mean 'transposed'?", else the list of known words */
static json_t *sidecar_unknown(const struct sidecar_where *w, const char *what, const char *word,
                               const char *(*get)(const void *, int), const void *words, struct err *e)
{
    const char *near = nearest_word(word, get, words);
    char all[300] = "";

    if (near)
        return sidecar_refuse(w, e, "no %s '%.60s'; did you mean '%s'?", what, word, near);
    for (int i = 0; get(words, i); i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", get(words, i));
    return sidecar_refuse(w, e, "no %s '%.60s'; known: %s", what, word, all);
}

/* The word, new, if it is one of the list; NULL with e. */
static json_t *sidecar_known_word(const json_t *v, const struct sidecar_where *w, const char *what,
                                  const char *const *words, struct err *e)
{
    if (!json_is_string(v))
        return sidecar_refuse(w, e, "a %s is a word", what);
    for (int i = 0; words[i]; i++)
        if (!strcmp(words[i], json_string_value(v)))
            return json_incref((json_t *)v);
    return sidecar_unknown(w, what, json_string_value(v), sidecar_word_at, words, e);
}

/* ---- values ---- */

/* A checked copy of "tolerance"; NULL with e. So are those below. */
static json_t *sidecar_check_tolerance(const json_t *v, const struct sidecar_where *w, struct err *e)
{
    static const char *const parts[] = {"abs", "rel", "matched", "most", NULL};
    double x[4] = {0, 0, 0, 0};
    const char *key;
    json_t *part, *out;

    if (!json_is_object(v) || json_object_size(v) == 0)
        return sidecar_refuse(w, e, "tolerance is {abs: NUMBER, rel: NUMBER}, or one of the two");
    json_object_foreach((json_t *)v, key, part) {
        int i = 0;

        while (parts[i] && strcmp(parts[i], key))
            i++;
        if (!parts[i])
            return sidecar_unknown(w, "part of a tolerance", key, sidecar_word_at, parts, e);
        x[i] = json_is_number(part) ? json_number_value(part) : -1;
        if (!(x[i] >= 0) || !isfinite(x[i]))
            return sidecar_refuse(w, e, "tolerance %s must be a number of at least 0", key);
    }
    if (x[2] > 1 || (json_object_get(v, "matched") && x[2] < 0.5))
        return sidecar_refuse(w, e, "tolerance matched is a share of the elements, from 0.5 to 1");
    out = json_pack("{s:f,s:f}", "abs", x[0], "rel", x[1]);
    for (int i = 2; i < 4; i++)
        if (json_object_get(v, parts[i]))
            json_object_set_new(out, parts[i], json_real(x[i]));
    return out;
}

/* A list of words, none of them twice. */
static json_t *sidecar_check_words(const json_t *v, const struct sidecar_where *w, const char *what,
                                   const char *const *words, struct err *e)
{
    json_t *out = json_array(), *word;

    for (size_t i = 0; i < json_array_size(v); i++) {
        if (!(word = sidecar_known_word(json_array_get(v, i), w, what, words, e))) {
            json_decref(out);
            return NULL;
        }
        for (size_t k = 0; word && k < i; k++)
            if (json_equal(json_array_get(out, k), word)) {
                sidecar_refuse(w, e, "%s '%s' is listed twice", what, json_string_value(word));
                json_decref(word);
                json_decref(out);
                return NULL;
            }
        json_array_append_new(out, word);
    }
    return out;
}

/* The list of distributions, checked; NULL with e. */
static json_t *sidecar_check_regimes(const json_t *v, const struct sidecar_where *w, struct err *e)
{
    if (!json_is_array(v) || json_array_size(v) == 0)
        return sidecar_refuse(w, e, "regimes is a list such as [normal, large]");
    return sidecar_check_words(v, w, "regime", regimes, e);
}

/* The list of side effects, checked; NULL with e. */
static json_t *sidecar_check_effects(const json_t *v, const struct sidecar_where *w, struct err *e)
{
    if (!json_is_array(v) || json_array_size(v) == 0)
        return sidecar_refuse(w, e, "effects is a list of inputs, buffers or both");
    return sidecar_check_words(v, w, "effect", effects, e);
}

/* A checked copy of "sizes"; NULL with e. */
static json_t *sidecar_check_sizes(const json_t *v, const struct sidecar_where *w, struct err *e)
{
    const char *name;
    json_t *n;

    if (!json_is_object(v) || json_object_size(v) == 0)
        return sidecar_refuse(w, e, "sizes is {NAME: INTEGER, ...} with names of module-level assignments of the task");
    json_object_foreach((json_t *)v, name, n) {
        if (!json_is_integer(n))
            return sidecar_refuse(w, e, "size '%.60s' must be a whole number", name);
        if (json_integer_value(n) < 0 || json_integer_value(n) > SIZE_MAX_VALUE)
            return sidecar_refuse(w, e, "size '%.60s' is %lld; it must be 0 to 2^40", name,
                                  (long long)json_integer_value(n));
    }
    return json_incref((json_t *)v);
}

static json_t *sidecar_check_dtype(const json_t *v, const struct sidecar_where *w, struct err *e)
{
    return sidecar_known_word(v, w, "dtype", dtypes, e);
}

/* {0: transposed, 2: strided} becomes [transposed, null, strided]. */
static json_t *sidecar_layout_list(const json_t *v, const struct sidecar_where *w, struct err *e)
{
    json_t *out = json_array(), *word;
    const char *key;
    char *end;

    json_object_foreach((json_t *)v, key, word) {
        long i = strtol(key, &end, 10);

        if (!*key || *end || i < 0 || i >= INPUTS_MAX) {
            json_decref(out);
            return sidecar_refuse(w, e, "layout '%.60s' is no index of an input (0 to %d)", key, INPUTS_MAX - 1);
        }
        while ((long)json_array_size(out) <= i)
            json_array_append_new(out, json_null());
        json_array_set(out, (size_t)i, word);
    }
    return out;
}

/* A checked copy of "layout", as a word or as a list with one word for each input; NULL with e. */
static json_t *sidecar_check_layout(const json_t *v, const struct sidecar_where *w, struct err *e)
{
    json_t *list, *word;
    size_t i;

    if (json_is_string(v))
        return sidecar_known_word(v, w, "layout", layouts, e);
    if (!json_is_object(v) && !json_is_array(v))
        return sidecar_refuse(w, e, "layout is a word, a list with one per input, or {INDEX: WORD}");
    list = json_is_object(v) ? sidecar_layout_list(v, w, e) : json_incref((json_t *)v);
    if (list && (json_array_size(list) == 0 || json_array_size(list) > INPUTS_MAX)) {
        json_decref(list);
        return sidecar_refuse(w, e, "layout names no input, or more than %d", INPUTS_MAX);
    }
    json_array_foreach(list, i, word) {
        if (json_is_null(word))
            continue;
        if (!sidecar_known_word(word, w, "layout", layouts, e)) {
            json_decref(list);
            return NULL;
        }
        json_decref(word); /* sidecar_known_word gave a reference of its own */
    }
    return list;
}

/* A checked name of a variant, new; NULL with e. */
static json_t *sidecar_check_name(const json_t *v, const struct sidecar_where *w, struct err *e)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    const char *s = json_string_value(v);

    if (!s || !*s || strlen(s) > NAME_MAX_CHARS || strspn(s, letters) != strlen(s))
        return sidecar_refuse(w, e, "a name is 1 to %d letters, digits, '_', '-' or '.'", NAME_MAX_CHARS);
    return json_incref((json_t *)v);
}

/* ---- levels ---- */

static const struct key variant_keys[] = {{"name", sidecar_check_name},     {"sizes", sidecar_check_sizes},
                                          {"dtype", sidecar_check_dtype},
                                          {"layout", sidecar_check_layout}, {"tolerance", sidecar_check_tolerance},
                                          {"regimes", sidecar_check_regimes},
                                          {NULL, NULL}};

/* All keys of the table, null where absent. */
static json_t *sidecar_check_level(const json_t *v, const struct key *keys, const struct sidecar_where *w,
                                   struct err *e)
{
    json_t *out, *got, *value;
    const char *key;

    if (!json_is_object(v))
        return sidecar_refuse(w, e, "expected keys with values, such as '%s: ...'", keys->name);
    json_object_foreach((json_t *)v, key, got) {
        int i = 0;

        while (keys[i].name && strcmp(keys[i].name, key))
            i++;
        if (!keys[i].name)
            return sidecar_unknown(w, "key", key, sidecar_key_at, keys, e);
    }
    out = json_object();
    for (; keys->name; keys++) {
        got = json_object_get(v, keys->name);
        value = !got || json_is_null(got) ? json_null() : keys->check(got, w, e);
        if (!value) {
            json_decref(out);
            return NULL;
        }
        json_object_set_new(out, keys->name, value);
    }
    return out;
}

static bool sidecar_name_taken(const json_t *variants, const json_t *name)
{
    size_t i;
    json_t *v;

    json_array_foreach((json_t *)variants, i, v)
        if (json_equal(json_object_get(v, "name"), name))
            return true;
    return false;
}

/* kind: "variant" or "workload", for messages. */
static json_t *sidecar_check_entry(const json_t *raw, const char *kind, size_t i, const json_t *before,
                                   const struct sidecar_where *file, struct err *e)
{
    const char *name = json_string_value(json_object_get(raw, "name"));
    struct sidecar_where w = *file;
    json_t *v;

    if (name)
        snprintf(w.place, sizeof w.place, "%s '%.40s': ", kind, name);
    else
        snprintf(w.place, sizeof w.place, "%s %zu: ", kind, i + 1);
    if (!(v = sidecar_check_level(raw, variant_keys, &w, e)))
        return NULL;
    if (!name)
        sidecar_refuse(&w, e, "it needs a name");
    else if (sidecar_name_taken(before, json_object_get(v, "name")))
        sidecar_refuse(&w, e, "the name is given twice");
    else if (json_is_null(json_object_get(v, "sizes")) && json_is_null(json_object_get(v, "dtype")) &&
             json_is_null(json_object_get(v, "layout")) && json_is_null(json_object_get(v, "regimes")))
        sidecar_refuse(&w, e, "it changes nothing; give it sizes, dtype, layout or regimes");
    else
        return v;
    json_decref(v);
    return NULL;
}

/* A checked copy of a list of variants or workloads, of at most 'most' entries; NULL with e. */
static json_t *sidecar_check_entries(const json_t *v, const char *kind, int most, const struct sidecar_where *w,
                                     struct err *e)
{
    json_t *out, *one;

    if (!json_is_array(v))
        return sidecar_refuse(w, e, "%ss is a list; each begins with '- name: ...'", kind);
    if (json_array_size(v) > (size_t)most)
        return sidecar_refuse(w, e, "%zu %ss, at most %d are allowed", json_array_size(v), kind, most);
    out = json_array();
    for (size_t i = 0; i < json_array_size(v); i++) {
        if (!(one = sidecar_check_entry(json_array_get(v, i), kind, i, out, w, e))) {
            json_decref(out);
            return NULL;
        }
        json_array_append_new(out, one);
    }
    return out;
}

static json_t *sidecar_check_variants(const json_t *v, const struct sidecar_where *w, struct err *e)
{
    return sidecar_check_entries(v, "variant", SIDECAR_VARIANTS_MAX, w, e);
}

static json_t *sidecar_check_workloads(const json_t *v, const struct sidecar_where *w, struct err *e)
{
    return sidecar_check_entries(v, "workload", SIDECAR_WORKLOADS_MAX, w, e);
}

/* Where the task came from: a name for the record (task/formats). */
static json_t *sidecar_check_format(const json_t *v, const struct sidecar_where *w, struct err *e)
{
    return sidecar_check_name(v, w, e);
}

static const struct key top_keys[] = {{"tolerance", sidecar_check_tolerance}, {"regimes", sidecar_check_regimes},
                                      {"effects", sidecar_check_effects},     {"variants", sidecar_check_variants},
                                      {"workloads", sidecar_check_workloads}, {"format", sidecar_check_format},
                                      {NULL, NULL}};

json_t *sidecar_check(const json_t *raw, const char *what, struct err *e)
{
    struct sidecar_where w = {.file = what};
    json_t *v = sidecar_check_level(raw, top_keys, &w, e);

    if (v && json_is_null(json_object_get(v, "variants")))
        json_object_set_new(v, "variants", json_array());
    if (v && json_array_size(json_object_get(v, "workloads")) == 0)
        json_object_del(v, "workloads");
    if (v && json_is_null(json_object_get(v, "format")))
        json_object_del(v, "format");
    return v;
}
