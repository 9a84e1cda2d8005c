/* format_parts.c - what the readers of formats share: files beside each other, Python literals, rows, inlined modules;
 * see format.h. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "task/formats/format.h"

/* ---- for readers ---- */

bool format_named(const char *path, const char *base)
{
    return !strcmp(path_name(path), base);
}

int format_text(const char *path, struct buf *out, struct err *e)
{
    buf_init(out, 8 << 20);
    if (file_read(path, out, e) < 0) {
        buf_free(out);
        return -1;
    }
    if (utf8_bad_at(out->p, out->n) == out->n && !memchr(out->p, 0, out->n))
        return 0;
    buf_free(out);
    return err_set(e, ERR_INPUT, "'%s' is not UTF-8 text", path);
}

char *format_beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');

    return slash ? xasprintf("%.*s/%s", (int)(slash - path), path, name) : xstrdup(name);
}

void format_folder_name(const char *path, char *out, size_t n)
{
    char *folder = format_beside(path, ""), *end = folder + strlen(folder);

    while (end > folder && end[-1] == '/')
        *--end = 0;
    if (*folder)
        snprintf(out, n, "%.100s", path_name(folder));
    free(folder);
}

bool format_has_beside(const char *path, const char *name)
{
    char *at = format_beside(path, name);
    bool there = file_exists(at);

    free(at);
    return there;
}

bool format_is_identifier(const char *s)
{
    static const char *const taken[] = {"and", "as", "assert", "class", "def", "del", "for", "from", "global", "if",
                                        "import", "in", "is", "lambda", "None", "not", "or", "pass", "return", "torch",
                                        "nn", "case", "Model", "run", "True", "False", "while", "with", NULL};

    if (!isalpha((unsigned char)*s) && *s != '_')
        return false;
    for (const char *p = s; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_')
            return false;
    for (const char *const *t = taken; *t; t++)
        if (!strcmp(s, *t))
            return false;
    return strlen(s) < 100;
}

/* Appends a JSON list or object as a Python literal. */
static void format_python_members(struct buf *out, const json_t *v)
{
    const char *key, *sep = "";
    json_t *x;
    size_t i;

    if (json_is_array(v)) {
        buf_addc(out, '[');
        json_array_foreach(v, i, x) {
            buf_adds(out, i ? ", " : "");
            format_python(out, x);
        }
        buf_addc(out, ']');
        return;
    }
    buf_addc(out, '{');
    json_object_foreach((json_t *)v, key, x) {
        json_t *name = json_string(key);
        buf_adds(out, sep);
        format_python(out, name);
        buf_adds(out, ": ");
        format_python(out, x);
        json_decref(name);
        sep = ", ";
    }
    buf_addc(out, '}');
}

void format_python(struct buf *out, const json_t *v)
{
    char *text;

    if (json_is_array(v) || json_is_object(v)) {
        format_python_members(out, v);
    } else if (json_is_boolean(v) || json_is_null(v)) {
        buf_adds(out, json_is_null(v) ? "None" : json_is_true(v) ? "True" : "False");
    } else {
        text = json_dumps(v, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
        buf_adds(out, text ? text : "None");
        free(text);
    }
}

/* ---- rows ---- */

/* True where the key is an integer in all n rows. */
static bool format_is_size(const json_t *rows, int n, const char *key)
{
    for (int i = 0; i < n; i++)
        if (!json_is_integer(json_object_get(json_array_get(rows, (size_t)i), key)))
            return false;
    return true;
}

/* Appends a key of all rows as one Python list, chosen by 'case'; as one value where all agree. */
static void format_put_column(struct buf *out, const json_t *rows, int n, const char *key)
{
    buf_addf(out, "%s = ", key);
    if (format_is_size(rows, n, key)) {
        format_python(out, json_object_get(json_array_get(rows, 0), key));
    } else {
        buf_addc(out, '[');
        for (int i = 0; i < n; i++) {
            buf_adds(out, i ? ",\n    " : "");
            format_python(out, json_object_get(json_array_get(rows, (size_t)i), key));
        }
        buf_adds(out, "][case]");
    }
    buf_addc(out, '\n');
}

/* What row i changes about the first; new. */
static json_t *format_row_sizes(const json_t *rows, int n, int i, bool by_case)
{
    json_t *sizes = json_object(), *value;
    const char *key;

    if (by_case)
        json_object_set_new(sizes, "case", json_integer(i));
    json_object_foreach(json_array_get(rows, (size_t)i), key, value)
        if (format_is_size(rows, n, key) && !json_equal(value, json_object_get(json_array_get(rows, 0), key)))
            json_object_set(sizes, key, value);
    return sizes;
}

/* Adds a workload of these sizes; takes sizes. */
static void format_add_workload(json_t *workloads, json_t *sizes, int i)
{
    char name[32];

    snprintf(name, sizeof name, "row-%d", i);
    if (json_object_size(sizes))
        json_array_append_new(workloads, json_pack("{s:s,s:O}", "name", name, "sizes", sizes));
    json_decref(sizes);
}

/* Has each of the first n rows the keys of the first, and no other? */
static bool format_rows_agree(const json_t *rows, int n)
{
    const json_t *first = json_array_get(rows, 0);
    const char *key;
    json_t *value;

    for (int i = 1; i < n; i++) {
        if (json_object_size(json_array_get(rows, (size_t)i)) != json_object_size(first))
            return false;
        json_object_foreach((json_t *)first, key, value)
            if (!json_object_get(json_array_get(rows, (size_t)i), key))
                return false;
    }
    return true;
}

int format_rows(struct format_task *t, const json_t *rows, int most, struct err *e)
{
    int n = (int)json_array_size(rows) < most ? (int)json_array_size(rows) : most;
    json_t *workloads = json_array(), *value;
    bool by_case = false;
    const char *key;

    if (!format_rows_agree(rows, n)) {
        json_decref(workloads);
        return err_set(e, ERR_INPUT, "its rows do not all have the same keys: none says what a missing one would be");
    }
    json_object_foreach(json_array_get(rows, 0), key, value) {
        if (!format_is_identifier(key)) {
            json_decref(workloads);
            return err_set(e, ERR_INPUT, "'%.80s' cannot be the name of a size", key);
        }
        by_case = by_case || !format_is_size(rows, n, key);
    }
    if (by_case)
        buf_adds(&t->code, "case = 0  # the row\n");
    json_object_foreach(json_array_get(rows, 0), key, value)
        format_put_column(&t->code, rows, n, key);
    for (int i = 1; i < n; i++)
        format_add_workload(workloads, format_row_sizes(rows, n, i, by_case), i);
    if (json_array_size(workloads))
        json_object_set(t->sidecar, "workloads", workloads);
    json_decref(workloads);
    return 0;
}

/* ---- texts ---- */

/* True where the line imports from one of the modules. */
static bool format_imports_from(const char *line, const char *const *modules)
{
    for (; *modules; modules++) {
        size_t n = strlen(*modules);
        if (!strncmp(line, "from ", 5) && !strncmp(line + 5, *modules, n) && line[5 + n] == ' ')
            return true;
    }
    return false;
}

void format_inline(struct buf *out, const char *text, const char *const *modules)
{
    bool open = false; /* inside the brackets of such an import */

    for (const char *line = text, *next; *line; line = next) {
        const char *nl = strchr(line, '\n');
        size_t n = nl ? (size_t)(nl - line) : strlen(line);
        bool drop = open || format_imports_from(line, modules);

        next = line + n + (nl != NULL);
        if (drop)
            open = !memchr(line, ')', n) && (open || memchr(line, '(', n));
        if (!drop)
            buf_add(out, line, n);
        buf_addc(out, '\n');
    }
}
