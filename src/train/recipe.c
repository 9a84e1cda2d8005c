/* recipe.c - see recipe.h. */
#include "train/recipe.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/opt.h"

#define MAX_BASES 4

static const char *const top_keys[] = {"name", "base", "model", "seed", "stages", "bench-after", NULL};

static bool recipe_in_list(const char *const *list, const char *word)
{
    for (; *list; list++)
        if (!strcmp(*list, word))
            return true;
    return false;
}

struct recipe_names {
    const char *const *a, *const *b;
};

/* Name i of both lists; NULL behind the last. */
static const char *recipe_either(const void *ctx, int i)
{
    const struct recipe_names *n = ctx;

    for (const char *const *p = n->a; *p; p++)
        if (i-- == 0)
            return *p;
    for (const char *const *p = n->b; p && *p; p++)
        if (i-- == 0)
            return *p;
    return NULL;
}

/* ERR_INPUT with the nearest known word. Always -1. */
static int recipe_unknown(const char *what, const char *word, const char *const *a, const char *const *b, struct err *e)
{
    struct recipe_names n = {a, b};
    const char *near = nearest_word(word, recipe_either, &n);
    int shown = (int)strcspn(word, "\n") < 60 ? (int)strcspn(word, "\n") : 60;

    if (near)
        return err_set(e, ERR_INPUT, "unknown %s '%.*s'; did you mean '%s'?", what, shown, word, near);
    return err_set(e, ERR_INPUT, "unknown %s '%.*s'; recipes/quickstart.yaml shows them all", what, shown, word);
}

int recipe_each_word(const json_t *recipe, const char *key, int (*f)(const char *word, void *ctx, struct err *e),
                     void *ctx, struct err *e)
{
    char *list = xstrdup(json_str(recipe, key, "")), *save = NULL;
    int rc = 0;

    for (char *w = strtok_r(list, " ,\t\n", &save); w && rc == 0; w = strtok_r(NULL, " ,\t\n", &save))
        rc = f(w, ctx, e);
    free(list);
    return rc;
}

struct word_ctx {
    const char *const *sections;
    const char *key;
    char *own[64];
    int n;
};

/* A callback for a list's words: each must be a section, once. */
static int recipe_check_word(const char *word, void *ctx, struct err *e)
{
    struct word_ctx *c = ctx;

    if (!recipe_in_list(c->sections, word))
        return recipe_unknown("stage", word, c->sections, NULL, e);
    for (int i = 0; i < c->n; i++)
        if (!strcmp(c->own[i], word))
            return err_set(e, ERR_INPUT, "stage '%s' comes twice in '%s'", word, c->key);
    if (c->n < 64)
        c->own[c->n++] = xstrdup(word);
    return 0;
}

/* ERR_INPUT where the key's words are not all sections. */
static int recipe_check_words(const json_t *recipe, const char *key, const char *const *sections, struct err *e)
{
    struct word_ctx c = {.sections = sections, .key = key};
    int rc = recipe_each_word(recipe, key, recipe_check_word, &c, e);

    for (int i = 0; i < c.n; i++)
        free(c.own[i]);
    return rc;
}

/* ERR_INPUT names an unknown key or a value of another form. */
static int recipe_check(const json_t *recipe, const char *const *sections, struct err *e)
{
    const char *key;
    json_t *v;

    if (!json_is_object(recipe))
        return err_set(e, ERR_INPUT, "a recipe is a mapping of keys and sections");
    json_object_foreach((json_t *)recipe, key, v) {
        bool top = recipe_in_list(top_keys, key);

        if (!top && !recipe_in_list(sections, key))
            return recipe_unknown("key", key, top_keys, sections, e);
        if (top && (json_is_object(v) || json_is_array(v)))
            return err_set(e, ERR_INPUT, "key '%s' wants a single value; lists are words with blanks between", key);
        if (!top && !json_is_object(v) && !json_is_null(v))
            return err_set(e, ERR_INPUT, "section '%s' wants keys", key);
    }
    if (recipe_check_words(recipe, "stages", sections, e) < 0)
        return -1;
    return recipe_check_words(recipe, "bench-after", sections, e);
}

json_t *recipe_parse(const char *text, size_t n, const char *what, const char *const *sections, struct err *e)
{
    json_t *v = yaml_parse(text, n, what, e);

    if (v && recipe_check(v, sections, e) < 0) {
        err_prefix(e, "%s", what);
        json_decref(v);
        return NULL;
    }
    return v;
}

/* Keys of 'over' win; sections are merged key by key. */
static void recipe_merge(json_t *base, const json_t *over)
{
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)over, key, v) {
        json_t *old = json_object_get(base, key);

        if (json_is_object(old) && json_is_object(v))
            json_object_update(old, v);
        else if (!json_is_null(v) || !json_is_object(old))
            json_object_set(base, key, v);
    }
    json_object_del(base, "base");
}

/* "recipes/control.yaml", "quickstart.yaml" -> "recipes/quickstart.yaml"; an absolute name stays. The caller frees. */
static char *recipe_beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');

    if (!slash || *name == '/')
        return xstrdup(name);
    return xasprintf("%.*s/%s", (int)(slash - path), path, name);
}

/* A recipe with its bases merged below it, new; NULL with e. */
static json_t *recipe_read_at(const char *path, const char *const *sections, int depth, struct err *e)
{
    struct buf b;
    json_t *v = NULL, *base;
    char *base_path;

    buf_init(&b, 1 << 20);
    if (file_read(path, &b, e) == 0)
        v = recipe_parse(b.p, b.n, path, sections, e);
    buf_free(&b);
    if (!v || !json_str(v, "base", NULL))
        return v;
    if (depth == MAX_BASES) {
        err_set(e, ERR_INPUT, "%s: 'base' goes deeper than %d recipes", path, MAX_BASES);
        json_decref(v);
        return NULL;
    }
    base_path = recipe_beside(path, json_str(v, "base", ""));
    if ((base = recipe_read_at(base_path, sections, depth + 1, e)))
        recipe_merge(base, v);
    free(base_path);
    json_decref(v);
    return base;
}

json_t *recipe_read(const char *path, const char *const *sections, struct err *e)
{
    return recipe_read_at(path, sections, 0, e);
}

int recipe_set(json_t *recipe, const char *assignment, const char *const *sections, struct err *e)
{
    const char *eq = strchr(assignment, '='), *dot = strchr(assignment, '.');
    char *key, *section;
    int rc = 0;

    if (!eq || eq == assignment)
        return err_set(e, ERR_INPUT, "'--set %s' wants KEY=VALUE or SECTION.KEY=VALUE", assignment);
    if (dot && dot < eq) {
        section = xstrndup(assignment, (size_t)(dot - assignment));
        key = xstrndup(dot + 1, (size_t)(eq - dot - 1));
        if (!recipe_in_list(sections, section)) {
            rc = recipe_unknown("section", section, sections, NULL, e);
        } else {
            if (!json_is_object(json_object_get(recipe, section)))
                json_object_set_new(recipe, section, json_object());
            json_object_set_new(json_object_get(recipe, section), key, json_utf8(eq + 1, strlen(eq + 1)));
        }
        free(section);
    } else {
        key = xstrndup(assignment, (size_t)(eq - assignment));
        if (!recipe_in_list(top_keys, key))
            rc = recipe_unknown("key", key, top_keys, NULL, e);
        else
            json_object_set_new(recipe, key, json_utf8(eq + 1, strlen(eq + 1)));
    }
    free(key);
    return rc < 0 ? rc : recipe_check(recipe, sections, e);
}
