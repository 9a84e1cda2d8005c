/* opt.c - see opt.h. */
#include "base/opt.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/listing.h"
#include "base/mem.h"

/* Levenshtein's distance of two words; 64 for longer ones. */
static int opt_distance(const char *a, const char *b)
{
    int row[65], n = (int)strlen(b), diag, up;

    if (n > 64 || strlen(a) > 64)
        return 64;
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; *a; a++, i++) {
        diag = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            up = row[j];
            int best = diag + (*a != b[j - 1]);
            if (up + 1 < best)
                best = up + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
            diag = up;
        }
    }
    return row[n];
}

const char *nearest_word(const char *word, const char *(*get)(const void *ctx, int i), const void *ctx)
{
    const char *best = NULL, *w;
    int best_d = 1 + (int)strlen(word) / 3;

    for (int i = 0; (w = get(ctx, i)) != NULL; i++) {
        int d = opt_distance(word, w);
        if (strlen(word) >= 3 && !strncmp(w, word, strlen(word)))
            d = 1;
        if (d <= best_d && (!best || d < best_d)) {
            best = w;
            best_d = d;
        }
    }
    return best;
}

/* The row of that name of n letters; NULL: none. */
static const struct opt *opt_find(const struct opt *rows, const char *name, size_t n)
{
    for (; rows->name; rows++)
        if (strlen(rows->name) == n && !strncmp(rows->name, name, n))
            return rows;
    return NULL;
}

/* Short flags, each for a row of that name where a command has one. */
static const char *const opt_short[][2] = {{"-o", "--out"}, {"-q", "--quiet"}, {"-v", "--verbose"}, {"-j", "--jobs"}};

/* The long form of a short flag that these rows have; else the flag itself. */
static const char *opt_long_flag(const struct opt *rows, const char *flag)
{
    for (size_t i = 0; i < sizeof opt_short / sizeof *opt_short; i++)
        if (!strcmp(flag, opt_short[i][0]) && opt_find(rows, opt_short[i][1] + 2, strlen(opt_short[i][1] + 2)))
            return opt_short[i][1];
    return flag;
}

const char *opt_short_flag(const char *name)
{
    for (size_t i = 0; i < sizeof opt_short / sizeof *opt_short; i++)
        if (!strcmp(name, opt_short[i][1] + 2))
            return opt_short[i][0];
    return NULL;
}

static const char *opt_row_name(const void *ctx, int i)
{
    return ((const struct opt *)ctx)[i].name;
}

/* ERR_INPUT with the nearest known name. Always -1. */
static int opt_unknown(const struct opt *rows, const char *what, const char *name, struct err *e)
{
    const char *near = nearest_word(name, opt_row_name, rows);

    if (near)
        return err_set(e, ERR_INPUT, "unknown %s '%s'; did you mean '%s'?", what, name, near);
    return err_set(e, ERR_INPUT, "unknown %s '%s'; -h lists the options", what, name);
}

/* True where v is one of the words that the help text begins with, as in "a|b|c: ..". */
static bool opt_choice_ok(const char *help, const char *v)
{
    size_t n = strlen(v);

    for (const char *p = help; *p && *p != ':'; p += *p == '|') {
        size_t k = strcspn(p, "|:");
        if (k == n && !strncmp(p, v, n))
            return true;
        p += k;
    }
    return false;
}

/* A path whose bytes were mended would name another file. */
static json_t *opt_convert_text(const struct opt *row, const char *text, struct err *e)
{
    size_t n = strlen(text);

    if (utf8_bad_at(text, n) == n)
        return json_stringn(text, n);
    err_set(e, ERR_INPUT, "'%s' wants UTF-8 text, not '%s'; rename the file", row->name, text);
    return NULL;
}

/* The range that a number's help begins with: "0 to 1: ..", "from 1: ..". */
static int opt_check_range(const struct opt *row, double v, const char *text, struct err *e)
{
    double low, high = HUGE_VAL;
    int n = 0;

    if (sscanf(row->help, "%lf to %lf%n", &low, &high, &n) != 2 && sscanf(row->help, "from %lf%n", &low, &n) != 1)
        return 0;
    if (n == 0 || row->help[n] != ':' || (v >= low && v <= high))
        return 0;
    return err_set(e, ERR_INPUT, "'%s' wants a number %.*s, not %s", row->name, n, row->help, text);
}

/* Text to a typed value; new reference, or NULL with *e set. */
static json_t *opt_convert(const struct opt *row, const char *text, struct err *e)
{
    char *end;

    errno = 0;
    switch (row->type) {
    case OPT_BOOL:
        if (!strcmp(text, "true") || !strcmp(text, "1") || !strcmp(text, "yes"))
            return json_true();
        if (!strcmp(text, "false") || !strcmp(text, "0") || !strcmp(text, "no"))
            return json_false();
        err_set(e, ERR_INPUT, "'%s' wants true or false, not '%s'", row->name, text);
        return NULL;
    case OPT_INT: {
        long long v = strtoll(text, &end, 10);
        if (*text && !*end && !errno)
            return opt_check_range(row, (double)v, text, e) < 0 ? NULL : json_integer(v);
        err_set(e, ERR_INPUT, "'%s' wants a whole number, not '%s'", row->name, text);
        return NULL;
    }
    case OPT_REAL: {
        double v = strtod(text, &end);
        if (*text && !*end && v == v && v < 1e300 && v > -1e300)
            return opt_check_range(row, v, text, e) < 0 ? NULL : json_real(v);
        err_set(e, ERR_INPUT, "'%s' wants a number, not '%s'", row->name, text);
        return NULL;
    }
    case OPT_CHOICE:
        if (!opt_choice_ok(row->help, text)) {
            err_set(e, ERR_INPUT, "'%s' wants one of %.*s, not '%s'", row->name, (int)strcspn(row->help, ":"),
                    row->help, text);
            return NULL;
        }
        break;
    case OPT_STR:
    case OPT_PATHS:
    case OPT_LIST:
    case OPT_OUT_FOLDER:
    case OPT_OUT_FILE:
        break;
    }
    return opt_convert_text(row, text, e);
}

static int opt_set_text(struct opts *o, const struct opt *row, const char *text, struct err *e)
{
    json_t *v = opt_convert(row, text, e);

    return v ? json_object_set_new(o->values, row->name, v) : -1;
}

/* Gives each option the value of its environment variable, else its default. */
static int opt_set_defaults(struct opts *o, struct err *e)
{
    for (const struct opt *row = o->rows; row->name; row++) {
        char var[80] = "MUSACODER_";
        size_t n = strlen(var);
        const char *env;
        for (const char *p = row->name; *p && n < sizeof var - 1; p++)
            var[n++] = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
        var[n] = 0;
        env = getenv(var);
        if (env && *env) {
            if (opt_set_text(o, row, env, e) < 0)
                return err_prefix(e, "environment variable %s", var);
        } else if (row->def && opt_set_text(o, row, row->def, e) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Sets options from a recipe's object of single values. ERR_INPUT names an unknown key, with the nearest one. */
static int opt_set_config(struct opts *o, const json_t *config, struct err *e)
{
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)config, key, v)
    {
        const struct opt *row = opt_find(o->rows, key, strlen(key));
        char *text;
        int rc;
        if (!row)
            return opt_unknown(o->rows, "key", key, e);
        if (json_is_object(v) || json_is_array(v))
            return err_set(e, ERR_INPUT, "key '%s' wants a single value", key);
        text = json_is_string(v) ? xstrdup(json_string_value(v)) : json_text(v);
        rc = json_is_null(v) ? (json_object_del(o->values, key), 0) : opt_set_text(o, row, text, e);
        free(text);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* '--bdr false': the option would be true and the word be lost. */
static int opt_check_switch(const struct opt *row, int argc, char **argv, int i, struct err *e)
{
    static const char *const off[] = {"false", "no", "0", "off"}, *const on[] = {"true", "yes", "1", "on"};
    const char *next = i + 1 < argc ? argv[i + 1] : "";

    for (int k = 0; k < 4; k++)
        if (!strcmp(next, off[k]) || !strcmp(next, on[k]))
            return err_set(e, ERR_INPUT, "'--%s' is on by itself and takes no word '%s'; say --%s%s or --%s=%s",
                           row->name, next, strcmp(next, off[k]) ? "" : "no-", row->name, row->name,
                           strcmp(next, off[k]) ? "true" : "false");
    return 0;
}

/* flag: argv[*i], a short one in its long form. */
static int opt_set_flag(struct opts *o, const char *flag, int argc, char **argv, int *i, struct err *e)
{
    const char *arg = flag + 2, *eq = strchr(arg, '=');
    size_t n = eq ? (size_t)(eq - arg) : strlen(arg);
    const struct opt *row = opt_find(o->rows, arg, n);
    char *word;

    if (!row && !eq && !strncmp(arg, "no-", 3) && (row = opt_find(o->rows, arg + 3, n - 3)) && row->type == OPT_BOOL)
        return opt_set_text(o, row, "false", e);
    if (!row || (row->type != OPT_BOOL && !eq && *i + 1 >= argc)) {
        if (row)
            return err_set(e, ERR_INPUT, "option '--%s' wants a value", row->name);
        word = xstrndup(arg, n);
        opt_unknown(o->rows, "option", word, e);
        free(word);
        return -1;
    }
    if (row->type == OPT_BOOL && !eq)
        return opt_check_switch(row, argc, argv, *i, e) < 0 ? -1 : opt_set_text(o, row, "true", e);
    if (row->type == OPT_LIST && opts_has(o, row->name)) {
        char *both = xasprintf("%s\n%s", opts_str(o, row->name), eq ? eq + 1 : argv[++*i]);
        int rc = opt_set_text(o, row, both, e);

        free(both);
        return rc;
    }
    return opt_set_text(o, row, eq ? eq + 1 : argv[++*i], e);
}

int opts_parse(const struct opt *rows, int argc, char **argv, const json_t *config, struct opts *ret, struct err *e)
{
    struct opts o = {.rows = rows, .values = json_object()};
    bool flags = true;

    o.args = xcalloc((size_t)argc + 1, sizeof *o.args);
    if (opt_set_defaults(&o, e) < 0 || (config && opt_set_config(&o, config, e) < 0))
        goto fail;
    for (int i = 0; i < argc; i++) {
        const char *word = flags ? opt_long_flag(rows, argv[i]) : argv[i];

        if (flags && !strcmp(word, "--"))
            flags = false;
        else if (flags && (!strcmp(word, "-h") || !strcmp(word, "--help")))
            o.help = true;
        else if (flags && word[0] == '-' && word[1] == '-') {
            if (opt_set_flag(&o, word, argc, argv, &i, e) < 0)
                goto fail;
        } else if (flags && word[0] == '-' && word[1]) {
            opt_unknown(rows, "option", word, e);
            goto fail;
        } else
            o.args[o.n_args++] = argv[i];
    }
    *ret = o;
    return 0;
fail:
    opts_free(&o);
    return -1;
}

void opts_free(struct opts *o)
{
    json_decref(o->values);
    free(o->args);
    memset(o, 0, sizeof *o);
}

const char *opts_str(const struct opts *o, const char *name)
{
    return json_string_value(json_object_get(o->values, name));
}

int64_t opts_int(const struct opts *o, const char *name)
{
    return json_integer_value(json_object_get(o->values, name));
}

double opts_real(const struct opts *o, const char *name)
{
    return json_number_value(json_object_get(o->values, name));
}

bool opts_bool(const struct opts *o, const char *name)
{
    return json_is_true(json_object_get(o->values, name));
}

bool opts_has(const struct opts *o, const char *name)
{
    return json_object_get(o->values, name) != NULL;
}

/* True where the row's type and its field's type fit. */
static bool opt_fits_field(const struct opt *row)
{
    switch (row->type) {
    case OPT_BOOL: return row->to == OPT_TO_BOOL;
    case OPT_INT: return row->to == OPT_TO_INT || row->to == OPT_TO_INT64 || row->to == OPT_TO_UINT64;
    case OPT_REAL: return row->to == OPT_TO_DOUBLE;
    case OPT_STR: case OPT_PATHS: case OPT_CHOICE: case OPT_LIST: case OPT_OUT_FOLDER: case OPT_OUT_FILE:
        return row->to == OPT_TO_TEXT;
    }
    return false;
}

/* Writes v to the field. ERR_INPUT: the field cannot hold it. */
static int opt_store_integer(const struct opt *row, int64_t v, char *field, struct err *e)
{
    if (row->to == OPT_TO_INT && (v < INT_MIN || v > INT_MAX))
        return err_set(e, ERR_INPUT, "'%s' is %lld; %d is the largest that is possible", row->name, (long long)v,
                       INT_MAX);
    if (row->to == OPT_TO_INT)
        *(int *)field = (int)v;
    else if (row->to == OPT_TO_INT64)
        *(int64_t *)field = v;
    else
        *(uint64_t *)field = (uint64_t)v; /* seeds: -1 is one, too */
    return 0;
}

int opts_store(const struct opts *o, void *into, struct err *e)
{
    for (const struct opt *row = o->rows; row->name; row++) {
        char *field = (char *)into + row->at;

        if (row->to == OPT_UNBOUND || !opts_has(o, row->name))
            continue;
        if (!opt_fits_field(row))
            return err_set(e, ERR_BUG, "the row of '%s' does not fit its field", row->name);
        if (row->to == OPT_TO_BOOL)
            *(bool *)field = opts_bool(o, row->name);
        else if (row->to == OPT_TO_DOUBLE)
            *(double *)field = opts_real(o, row->name);
        else if (row->to == OPT_TO_TEXT)
            *(const char **)field = opts_str(o, row->name);
        else if (opt_store_integer(row, opts_int(o, row->name), field, e) < 0)
            return -1;
    }
    return 0;
}

/* Is the file at path somewhere below the folder? */
static bool opt_is_below(const char *folder, const char *path)
{
    char *f = realpath(folder, NULL), *p = realpath(path, NULL);
    bool below = f && p && path_is_below(f, p);

    free(f), free(p);
    return below;
}

/* Does the file lie in the cache or the data folder? Its name there is a key of ours. */
static bool opt_is_kept(const char *path)
{
    char *cache = path_cache(""), *data = path_data("");
    bool kept = (cache && opt_is_below(cache, path)) || (data && opt_is_below(data, path));

    free(cache), free(data);
    return kept;
}

/* A file that a folder of ours is made of. Its pages, cards and notes are written anew. */
static bool opt_is_part_of_ours(const char *path)
{
    static const char *const ends[] = {".html", ".md", ".txt"};
    const char *dot = strrchr(path_name(path), '.');
    bool page = false;

    for (size_t i = 0; dot && i < sizeof ends / sizeof *ends; i++)
        page |= !strcmp(dot, ends[i]);
    return file_exists(path) && (opt_is_kept(path) || (!page && folder_lies_in_ours(path)));
}

/* Does who reads 'from' read 'to'? A file in a user's folder counts, pages and cards in one of ours do not. */
static bool opt_is_read(const char *from, const char *to)
{
    bool inside = file_is_dir(from) && !folder_lies_in_ours(to) && opt_is_below(from, to);

    return inside || file_is_same(from, to);
}

/* Are the two one file, also one that is not there yet? */
static bool opt_is_one_place(const char *a, const char *b)
{
    char *fa = path_folder(a), *fb = path_folder(b);
    bool same = !strcmp(a, b) || (file_is_same(fa, fb) && !strcmp(path_name(a), path_name(b)));

    free(fa), free(fb);
    return same;
}

void opt_reads_add(struct opt_reads *r, char *path)
{
    r->path = xrealloc(r->path, (r->n + 1) * sizeof *r->path);
    r->path[r->n++] = path;
}

void opt_reads_free(struct opt_reads *r)
{
    names_free(r->path, r->n);
    *r = (struct opt_reads){0};
}

/* Is the result of this row one of the words, or of what the command reads besides? */
static int opt_check_words(const struct opts *o, const struct opt_reads *reads, const struct opt *row, struct err *e)
{
    const char *to = opts_str(o, row->name);
    bool read = false;

    for (int i = 0; i < o->n_args; i++)
        read |= opt_is_read(o->args[i], to) || opt_is_one_place(o->args[i], to);
    for (size_t i = 0; i < reads->n; i++)
        read |= opt_is_read(reads->path[i], to);
    return read ? err_set(e, ERR_INPUT, "'%s' is read and would be written over; name another --%s", to, row->name)
                : 0;
}

/* ERR_INPUT where the row names a result that is a folder, or a file of a folder that musacoder made. */
static int opt_check_result(const struct opts *o, const struct opt_reads *reads, const struct opt *row, struct err *e)
{
    const char *to = opts_str(o, row->name);

    if (row->type != OPT_OUT_FILE || !to)
        return 0;
    if (file_is_dir(to))
        return err_set(e, ERR_INPUT, "'%s' is a folder; --%s wants the name of a file", to, row->name);
    if (opt_is_part_of_ours(to))
        return err_set(e, ERR_INPUT, "'%s' is part of a folder that musacoder made; name another --%s", to, row->name);
    if (folder_check_above(to, row->name, e) < 0 || stamp_check_links(to, e) < 0 ||
        opt_check_words(o, reads, row, e) < 0)
        return -1;
    for (const struct opt *other = o->rows; other->name; other++) {
        const char *from = opts_str(o, other->name);

        if (other != row && from && other->type == OPT_OUT_FILE && opt_is_one_place(from, to))
            return err_set(e, ERR_INPUT, "--%s and --%s are the same file '%s'", other->name, row->name, to);
        if (other != row && from && other->type != OPT_OUT_FOLDER && opt_is_read(from, to))
            return err_set(e, ERR_INPUT, "'%s' is of --%s and would be written over; name another --%s", to,
                           other->name, row->name);
    }
    return file_write_try(to, e) < 0 ? err_prefix(e, "--%s", row->name) : 0; /* before the work, and not after it */
}

int opts_check_results(const struct opts *o, const struct opt_reads *reads, struct err *e)
{
    for (const struct opt *row = o->rows; row->name; row++)
        if (opt_check_result(o, reads, row, e) < 0)
            return -1;
    return 0;
}

int opts_check_outside(const struct opts *o, const char *name, struct err *e)
{
    char *to = opts_has(o, name) ? path_real(opts_str(o, name)) : NULL;
    int rc = 0;

    for (int i = 0; to && i < o->n_args && rc == 0; i++) {
        char *from = file_is_dir(o->args[i]) ? path_real(o->args[i]) : NULL;

        if (from && (!strcmp(from, to) || path_is_below(from, to)))
            rc = err_set(e, ERR_INPUT, "'%s' lies in '%s', whose files are read; name another --%s",
                         opts_str(o, name), o->args[i], name);
        free(from);
    }
    free(to);
    return rc;
}

int opts_check_inputs(const struct opts *o, struct err *e)
{
    int rc = 0;

    for (const struct opt *row = o->rows; row->name; row++) {
        char *list = row->type == OPT_PATHS && opts_has(o, row->name) ? xstrdup(opts_str(o, row->name)) : NULL;
        char *save = NULL;

        for (char *p = list ? strtok_r(list, ",", &save) : NULL; p && rc == 0; p = strtok_r(NULL, ",", &save))
            rc = listing_check(p, e);
        free(list);
    }
    return rc;
}

const char *opt_meta(const struct opt *row)
{
    static const char *const meta[] = {[OPT_BOOL] = "", [OPT_INT] = " N", [OPT_REAL] = " X", [OPT_STR] = " TEXT",
                                       [OPT_PATHS] = " PATHS", [OPT_CHOICE] = " WORD", [OPT_LIST] = " TEXT",
                                       [OPT_OUT_FOLDER] = " FOLDER", [OPT_OUT_FILE] = " FILE"};

    return meta[row->type];
}

void opts_help(FILE *out, const struct opt *rows)
{
    const char *section = NULL;

    for (; rows->name; rows++) {
        char left[64];
        if (!section || strcmp(section, rows->section)) {
            section = rows->section;
            fprintf(out, "\n%s options:\n", section);
        }
        snprintf(left, sizeof left, "%s%s--%s%s", opt_short_flag(rows->name) ? opt_short_flag(rows->name) : "",
                 opt_short_flag(rows->name) ? ", " : "", rows->name, opt_meta(rows));
        fprintf(out, "  %-26s %s", left, rows->help);
        if (rows->def && *rows->def && !(rows->type == OPT_BOOL && !strcmp(rows->def, "false")))
            fprintf(out, " [%s]", rows->def);
        fputc('\n', out);
    }
}

int size_parse(const char *name, const char *text, uint64_t *ret, struct err *e)
{
    static const char letters[] = "KMGT";
    const char *letter = NULL;
    char *end;
    double v = strtod(text, &end), base = 1024;

    if (end == text || !(v >= 0) || strspn(text, "0123456789.") != (size_t)(end - text))
        return err_set(e, ERR_INPUT, "'%s' wants a size such as 10GiB, not '%s'", name, text);
    end += strspn(end, " ");
    if (*end && (letter = strchr(letters, toupper((unsigned char)*end)))) {
        end++;
        if (*end == 'i')
            end++;
        else if (*end == 'B')
            base = 1000;
    }
    end += *end == 'B';
    for (long i = letter ? letter - letters + 1 : 0; i > 0; i--)
        v *= base;
    if (*end || v >= 9e18)
        return err_set(e, ERR_INPUT, "'%s' wants a size such as 10GiB, not '%s'", name, text);
    *ret = (uint64_t)v;
    return 0;
}
