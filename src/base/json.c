/* json.c - see json.h. */
#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

#define DUMP_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(17) | JSON_ENCODE_ANY)
#define NESTING_MAX 100

json_t *json_parse(const char *text, size_t n, const char *what, struct err *e)
{
    json_error_t je;
    json_t *v = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &je);

    if (!v)
        err_set(e, ERR_INPUT, "'%s' is not valid JSON: line %d: %s", what, je.line, je.text);
    return v;
}

/* Integers of more digits than 64 bits hold get an exponent, which makes them doubles; strings stay as they are. */
static void json_widen_integers(const struct buf *in, struct buf *out)
{
    bool in_string = false;

    for (size_t i = 0; i < in->n;) {
        size_t n = in_string ? 0 : strspn(in->p + i, "0123456789");
        char next = in->p[i + n], before = i ? in->p[i - 1] : ' ';

        if (n > 18 && next != '.' && next != 'e' && next != 'E' && !strchr(".eE+", before)) {
            buf_add(out, in->p + i, n);
            buf_adds(out, "e0");
        } else if (n == 0) {
            if (in_string && in->p[i] == '\\' && i + 1 < in->n)
                buf_addc(out, in->p[i++]);
            else if (in->p[i] == '"')
                in_string = !in_string;
            buf_addc(out, in->p[i]);
            n = 1;
        } else {
            buf_add(out, in->p + i, n);
        }
        i += n;
    }
}

/* A file's JSON, new; NULL with e. foreign: integers that JSON's reader cannot hold become reals. */
static json_t *json_read_json(const char *path, bool foreign, struct err *e)
{
    struct buf b, wide;
    json_t *v = NULL;

    buf_init(&b, (size_t)1 << 30);
    buf_init(&wide, (size_t)1 << 30);
    if (file_read(path, &b, e) == 0) {
        if (foreign)
            json_widen_integers(&b, &wide);
        v = foreign ? json_parse(wide.p ? wide.p : "", wide.n, path, e) : json_parse(b.p, b.n, path, e);
    }
    buf_free(&b);
    buf_free(&wide);
    return v;
}

json_t *json_read(const char *path, struct err *e) { return json_read_json(path, false, e); }
json_t *json_read_foreign(const char *path, struct err *e) { return json_read_json(path, true, e); }

char *json_text(const json_t *v)
{
    char *s = json_dumps(v, DUMP_FLAGS);

    return s ? s : xstrdup("null");
}

void json_line(struct buf *out, const json_t *v)
{
    char *text = v ? json_text(v) : NULL;

    if (text)
        buf_adds(out, text), buf_addc(out, '\n');
    free(text);
}

void json_print(const json_t *v)
{
    char *text = json_text(v);

    puts(text);
    free(text);
}

char *json_file_text(const char *path, const json_t *v, struct err *e)
{
    char *s = json_dumps(v, JSON_INDENT(2) | JSON_REAL_PRECISION(17) | JSON_ENCODE_ANY);
    size_t n = s ? strlen(s) : 0;

    if (!s) { /* json_pack of bytes that are not UTF-8 is NULL */
        err_set(e, ERR_BUG, "what shall be written to '%s' is no JSON", path);
        return NULL;
    }
    s = xrealloc(s, n + 2);
    memcpy(s + n, "\n", 2);
    return s;
}

int json_write(const char *path, const json_t *v, struct err *e)
{
    char *s = json_file_text(path, v, e);
    int rc = s ? file_write(path, s, strlen(s), e) : -1;

    free(s);
    return rc;
}

int jsonl_append(const char *path, const json_t *v, struct err *e)
{
    char *s = json_dumps(v, DUMP_FLAGS);
    size_t n = s ? strlen(s) : 0;
    int rc;

    if (!s)
        return err_set(e, ERR_BUG, "what shall be added to '%s' is no JSON", path);
    s = xrealloc(s, n + 2);
    s[n] = '\n';
    rc = file_append(path, s, n + 1, e);
    free(s);
    return rc;
}

json_t *json_num(double x)
{
    if (isnan(x))
        return json_string("nan");
    if (isinf(x))
        return json_string(x > 0 ? "inf" : "-inf");
    return json_real(x);
}

double json_num_value(const json_t *v)
{
    const char *s = json_string_value(v);

    if (json_is_number(v))
        return json_number_value(v);
    if (s && !strcmp(s, "inf"))
        return INFINITY;
    if (s && !strcmp(s, "-inf"))
        return -INFINITY;
    return NAN;
}

/* Length of the valid UTF-8 sequence at s (1..4), or 0; *bad is the length of the maximal ill-formed subpart. */
static size_t json_utf8_len(const unsigned char *s, size_t n, size_t *bad)
{
    unsigned lo = 0x80, hi = 0xBF;
    size_t need;

    *bad = 1;
    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xC2 && s[0] <= 0xDF)
        need = 1;
    else if (s[0] >= 0xE0 && s[0] <= 0xEF) {
        need = 2;
        if (s[0] == 0xE0)
            lo = 0xA0;
        if (s[0] == 0xED)
            hi = 0x9F;
    } else if (s[0] >= 0xF0 && s[0] <= 0xF4) {
        need = 3;
        if (s[0] == 0xF0)
            lo = 0x90;
        if (s[0] == 0xF4)
            hi = 0x8F;
    } else
        return 0;
    for (size_t i = 1; i <= need; i++) {
        if (i >= n || s[i] < lo || s[i] > hi) {
            *bad = i;
            return 0;
        }
        lo = 0x80;
        hi = 0xBF;
    }
    return need + 1;
}

size_t utf8_bad_at(const char *s, size_t n)
{
    size_t i = 0, k, bad;

    while (i < n && (k = json_utf8_len((const unsigned char *)s + i, n - i, &bad)))
        i += k;
    return i;
}

void utf8_sanitize(struct buf *out, const char *s, size_t n)
{
    size_t i = 0;

    while (i < n) {
        size_t bad, k = json_utf8_len((const unsigned char *)s + i, n - i, &bad);
        if (k)
            buf_add(out, s + i, k);
        else
            buf_add(out, "\xEF\xBF\xBD", 3);
        i += k ? k : bad;
    }
}

json_t *json_utf8(const char *s, size_t n)
{
    struct buf b;
    json_t *v;

    buf_init(&b, (size_t)1 << 31);
    for (size_t i = 0; i < n;) { /* NUL cannot live in a jansson string that others read as C text */
        size_t run = strnlen(s + i, n - i);
        utf8_sanitize(&b, s + i, run);
        i += run;
        if (i < n) {
            buf_add(&b, "\xEF\xBF\xBD", 3);
            i++;
        }
    }
    v = json_stringn(b.p, b.n);
    buf_free(&b);
    return v;
}

const char *json_str(const json_t *obj, const char *key, const char *fallback)
{
    const char *s = json_string_value(json_object_get(obj, key));

    return s ? s : fallback;
}

int64_t json_i64(const json_t *obj, const char *key, int64_t fallback)
{
    const json_t *v = json_object_get(obj, key);

    return json_is_integer(v) ? (int64_t)json_integer_value(v) : fallback;
}

double json_f64(const json_t *obj, const char *key, double fallback)
{
    const json_t *v = json_object_get(obj, key);

    return v && !json_is_null(v) ? json_num_value(v) : fallback;
}

bool json_flag(const json_t *obj, const char *key, bool fallback)
{
    const json_t *v = json_object_get(obj, key);

    return json_is_boolean(v) ? json_is_true(v) : fallback;
}

double json_num_at(const json_t *obj, const char *key)
{
    return json_num_value(json_object_get(obj, key));
}

void json_count(json_t *obj, const char *key, int64_t n)
{
    json_object_set_new(obj, key, json_integer(json_i64(obj, key, 0) + n));
}

json_t *json_ints(const int32_t *v, size_t n)
{
    json_t *a = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(a, json_integer(v[i]));
    return a;
}

json_t *json_interval(double lo, double hi)
{
    return isfinite(lo) && isfinite(hi) ? json_pack("[f,f]", lo, hi) : json_null();
}

int jsonl_each(const char *path, int (*f)(json_t *, size_t, void *, struct err *), void *ctx, struct err *e)
{
    struct buf b;
    size_t line = 0;
    int rc;

    buf_init(&b, (size_t)1 << 33);
    rc = file_read(path, &b, e);
    for (char *p = b.p; rc == 0 && p < b.p + b.n;) {
        char *nl = memchr(p, '\n', (size_t)(b.p + b.n - p));
        size_t n = (size_t)((nl ? nl : b.p + b.n) - p);
        line++;
        if (strspn(p, " \t\r\n") < n) {
            json_t *v = json_parse(p, n, path, e);
            if (!v && !nl) {
                log_warn("'%s': the last line is incomplete and is skipped", path);
            } else if (!v) {
                rc = err_prefix(e, "record %zu", line);
            } else {
                rc = f(v, line, ctx, e);
                json_decref(v);
            }
        }
        p += n + 1;
    }
    buf_free(&b);
    return rc;
}

/* ---- YAML: the subset that maps onto JSON; anchors and tags are refused so that a recipe reads as it looks ---- */

/* A YAML number as integer or finite real, new; NULL with e for what is too large. */
static json_t *json_yaml_number(const yaml_node_t *node, const char *what, struct err *e)
{
    const char *s = (const char *)node->data.scalar.value;
    bool whole = strspn(s, "+-0123456789") == strlen(s);
    char *end;

    errno = 0;
    if (whole) {
        long long v = strtoll(s, &end, 10);
        if (!*end && !errno)
            return json_integer(v);
    } else {
        double d = strtod(s, &end);
        if (!*end && isfinite(d)) /* a number too small to hold is 0, one too large is nothing */
            return json_real(d);
    }
    if (*end)
        return json_utf8(s, node->data.scalar.length);
    err_set(e, ERR_INPUT, "'%s': line %zu: the number '%.40s' is too large", what, node->start_mark.line + 1, s);
    return NULL;
}

/* A YAML scalar as text, number, truth value or null. New; NULL with e. */
static json_t *json_yaml_scalar(const yaml_node_t *node, const char *what, struct err *e)
{
    const char *s = (const char *)node->data.scalar.value;

    if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return json_utf8(s, node->data.scalar.length);
    if (!*s || !strcmp(s, "null") || !strcmp(s, "~"))
        return json_null();
    if (!strcmp(s, "true") || !strcmp(s, "false"))
        return json_boolean(*s == 't');
    if (strpbrk(s, "0123456789") && strspn(s, "+-.0123456789eE") == strlen(s))
        return json_yaml_number(node, what, e);
    return json_utf8(s, node->data.scalar.length);
}

/* Node 'index' of a YAML document as JSON, new; NULL with e. depth: of the nesting so far. */
static json_t *json_yaml_convert(yaml_document_t *doc, int index, int depth, const char *what, struct err *e)
{
    yaml_node_t *node = yaml_document_get_node(doc, index);
    json_t *out = NULL;

    if (!node || depth > NESTING_MAX) {
        err_set(e, ERR_INPUT, "'%s': nested too deeply", what);
        return NULL;
    }
    if (node->type == YAML_SCALAR_NODE)
        return json_yaml_scalar(node, what, e);
    if (node->type == YAML_SEQUENCE_NODE) {
        out = json_array();
        for (yaml_node_item_t *it = node->data.sequence.items.start; it < node->data.sequence.items.top; it++) {
            json_t *v = json_yaml_convert(doc, *it, depth + 1, what, e);
            if (!v)
                goto fail;
            json_array_append_new(out, v);
        }
        return out;
    }
    out = json_object();
    for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++) {
        yaml_node_t *k = yaml_document_get_node(doc, p->key);
        json_t *v;
        if (!k || k->type != YAML_SCALAR_NODE) {
            err_set(e, ERR_INPUT, "'%s': line %zu: a key must be a plain word", what, node->start_mark.line + 1);
            goto fail;
        }
        if (json_object_get(out, (char *)k->data.scalar.value)) {
            err_set(e, ERR_INPUT, "'%s': line %zu: key '%s' is given twice", what, k->start_mark.line + 1,
                    (char *)k->data.scalar.value);
            goto fail;
        }
        v = json_yaml_convert(doc, p->value, depth + 1, what, e);
        if (!v || json_object_set_new(out, (char *)k->data.scalar.value, v) < 0) {
            if (v)
                err_set(e, ERR_INPUT, "'%s': line %zu: the key is not valid UTF-8", what, k->start_mark.line + 1);
            goto fail;
        }
    }
    return out;
fail:
    json_decref(out);
    return NULL;
}

/* libyaml's documents no longer show what was an alias, and a few lines of aliases can stand for 2^100 values; so the
 * text is first read as events. */
static int json_yaml_event_plain(const yaml_event_t *ev, int *documents, const char *what, struct err *e)
{
    const char *odd = NULL;

    if (ev->type == YAML_ALIAS_EVENT)
        odd = "an alias (*)";
    else if (ev->type == YAML_SCALAR_EVENT)
        odd = ev->data.scalar.anchor ? "an anchor (&)" : ev->data.scalar.tag ? "a tag (!)" : NULL;
    else if (ev->type == YAML_SEQUENCE_START_EVENT)
        odd = ev->data.sequence_start.anchor ? "an anchor (&)" : ev->data.sequence_start.tag ? "a tag (!)" : NULL;
    else if (ev->type == YAML_MAPPING_START_EVENT)
        odd = ev->data.mapping_start.anchor ? "an anchor (&)" : ev->data.mapping_start.tag ? "a tag (!)" : NULL;
    else if (ev->type == YAML_DOCUMENT_START_EVENT && ++*documents > 1)
        odd = "a second document (---)";
    return !odd ? 0 : err_set(e, ERR_INPUT, "'%s': line %zu: %s is not supported; write the value out", what,
                              ev->start_mark.line + 1, odd);
}

/* ERR_INPUT for YAML with aliases, anchors, tags or several documents. */
static int json_yaml_check_plain(const char *text, size_t n, const char *what, struct err *e)
{
    yaml_parser_t parser;
    yaml_event_t ev;
    bool more = true;
    int documents = 0, rc = 0;

    if (!yaml_parser_initialize(&parser))
        return err_set(e, ERR_ENV, "cannot start the YAML parser");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    while (more && rc == 0 && yaml_parser_parse(&parser, &ev)) { /* a syntax error is told by yaml_parse */
        rc = json_yaml_event_plain(&ev, &documents, what, e);
        more = ev.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&ev);
    }
    yaml_parser_delete(&parser);
    return rc;
}

json_t *yaml_parse(const char *text, size_t n, const char *what, struct err *e)
{
    yaml_parser_t parser;
    yaml_document_t doc;
    json_t *v = NULL;

    if (json_yaml_check_plain(text, n, what, e) < 0)
        return NULL;
    if (!yaml_parser_initialize(&parser)) {
        err_set(e, ERR_ENV, "cannot start the YAML parser");
        return NULL;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    if (!yaml_parser_load(&parser, &doc)) {
        err_set(e, ERR_INPUT, "'%s' is not valid YAML: line %zu: %s", what, parser.problem_mark.line + 1,
                parser.problem ? parser.problem : "unknown problem");
    } else {
        if (!yaml_document_get_root_node(&doc))
            err_set(e, ERR_INPUT, "'%s' is empty", what);
        else
            v = json_yaml_convert(&doc, 1, 0, what, e);
        yaml_document_delete(&doc);
    }
    yaml_parser_delete(&parser);
    return v;
}

json_t *yaml_read(const char *path, struct err *e)
{
    struct buf b;
    json_t *v = NULL;

    buf_init(&b, BUF_MAX_TEXT);
    if (file_read(path, &b, e) == 0)
        v = yaml_parse(b.p, b.n, path, e);
    buf_free(&b);
    return v;
}

/* C0 but tab and line end, DEL, and C1, which UTF-8 spells C2 80 to C2 9F. Length of what stands at s, or 0. */
static size_t json_control_at(const unsigned char *s, size_t n)
{
    if ((s[0] < 0x20 && s[0] != '\n' && s[0] != '\t') || s[0] == 0x7f)
        return 1;
    return n > 1 && s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0 ? 2 : 0;
}

void utf8_show(struct buf *out, const char *s, size_t n)
{
    struct buf clean;

    buf_init(&clean, out->max);
    utf8_sanitize(&clean, s, n);
    for (size_t i = 0; i < clean.n;) {
        size_t k = json_control_at((const unsigned char *)clean.p + i, clean.n - i);

        if (k)
            buf_adds(out, "\xEF\xBF\xBD");
        else
            buf_addc(out, clean.p[i]);
        i += k ? k : 1;
    }
    buf_free(&clean);
}
