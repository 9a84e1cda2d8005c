/* locate.c - see locate.h. */
#include "eval/verdict/locate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "eval/verdict/place.h"
#include "eval/verdict/record.h"

#define WORDS 200 /* of a line are compared: records hold no more of one */

/* Is this line, without its indentation, 'words' or longer than they are? Both may be cut. */
static bool locate_is_line(const char *line, const char *words)
{
    char text[WORDS];
    size_t n = strlen(words);

    if (!place_line(line, 1, text, sizeof text))
        return !*words;
    return n < WORDS / 2 ? !strcmp(text, words) : !strncmp(text, words, n < WORDS - 1 ? n : WORDS - 1);
}

static const char *locate_next_line(const char *p)
{
    p += strcspn(p, "\n");
    return *p ? p + 1 : p;
}

/* The line'th line of the literal that begins behind its quotes, if it is that long; NULL. */
static const char *locate_line_of(const char *literal, const char *end, int64_t line)
{
    for (; line > 1 && literal < end; line--)
        literal = locate_next_line(literal);
    return line == 1 && literal <= end ? literal : NULL;
}

/* The line of 'at', from 1. */
static int64_t locate_number(const char *program, const char *at)
{
    int64_t n = 1;

    for (; program < at; program++)
        n += *program == '\n';
    return n;
}

/* Among literals in three quotes: the one whose line reads so. *ret_found: how many do. */
static const char *locate_in_literals(const char *program, int64_t line, const char *words, int *ret_found)
{
    const char *found = NULL, *end;

    *ret_found = 0;
    for (const char *p = program; *p; p = end) {
        char quotes[4] = {p[0], p[0], p[0], 0};
        const char *at;

        end = p + 1;
        if ((*p != '"' && *p != '\'') || strncmp(p, quotes, 3))
            continue;
        end = strstr(p + 3, quotes);
        if (!end)
            end = p + strlen(p);
        at = locate_line_of(p + 3, end, line);
        if (at && locate_is_line(at, words)) {
            found = at;
            ++*ret_found;
        }
        end += *end ? 3 : 0;
    }
    return found;
}

/* The only line of the program that reads so, for sources that were put together. */
static const char *locate_only_line(const char *program, const char *words)
{
    const char *found = NULL;

    for (const char *p = program; *words && *p; p = locate_next_line(p))
        if (locate_is_line(p, words)) {
            if (found)
                return NULL;
            found = p;
        }
    return found;
}

int64_t locate_source(const char *program, int64_t line, const char *words)
{
    int n;
    const char *at = locate_in_literals(program, line, words, &n);

    if (n != 1)
        at = n ? NULL : locate_only_line(program, words);
    return at ? locate_number(program, at) : 0;
}

/* ---- files behind the program (task/bundle.h) ---- */

/* Does the compiler's name of a file end as the answer's does, or the other way round? */
static bool locate_is_file(const char *name, size_t n, const char *file)
{
    size_t k = strlen(file), same = n < k ? n : k;
    char before = n > same ? name[n - same - 1] : k > same ? file[k - same - 1] : '/';

    return same > 0 && before == '/' && !strncmp(name + n - same, file + k - same, same);
}

/* The line'th of the comment lines of a file, counted anew from each "#line" on; NULL: it has no such line. */
static const char *locate_in_file(const char *row, int64_t line)
{
    const char *found = NULL;
    long long again;

    for (int64_t n = 1; *row == '#' && (row[1] == '|' || row[1] == '%'); n++, row = locate_next_line(row))
        if (sscanf(row, "#|#line %lld", &again) == 1)
            n = again - 1;
        else if (n == line)
            found = row + 2;
    return found;
}

bool locate_file(const char *program, const char *file, int64_t line, const char *words, char *ret, size_t n_ret)
{
    static const char head[] = "#@file: ";

    for (const char *p = program; *p; p = locate_next_line(p)) {
        size_t n = strcspn(p, "\n"), k = sizeof head - 1;
        const char *at;

        if (n <= k || strncmp(p, head, k) || !locate_is_file(p + k, n - k, file))
            continue;
        at = locate_in_file(locate_next_line(p), line);
        if (!at || !locate_is_line(at, words))
            continue;
        snprintf(ret, n_ret, "%.*s", (int)(n - k), p + k);
        return true;
    }
    return false;
}

/* ---- of a record ---- */

/* What the verdict is about: {"file","line","text"} of a source, or {"line"} of the program. Borrowed; NULL. */
static const json_t *locate_cause(const json_t *v, const json_t *reason)
{
    const json_t *finding = json_object_get(reason, "finding");
    const char *category = json_str(reason, "category", "");

    if (json_i64(finding, "line", 0) > 0)
        return finding;
    if (!strcmp(category, "cheating"))
        return json_array_get(json_object_get(json_object_get(v, "legality"), "violations"), 0);
    if (!strcmp(category, "compile_error") && strcmp(json_str(reason, "stage", ""), "load"))
        return json_array_get(json_object_get(json_object_get(v, "compile"), "diagnostics"), 0);
    if (!strcmp(category, "correctness_error") && json_is_object(json_object_get(v, "unwritten")))
        return json_object_get(v, "unwritten");
    return reason;
}

/* A diagnostic has its line among those around it. */
static const char *locate_words(const json_t *cause)
{
    const json_t *row;
    size_t i;

    json_array_foreach(json_object_get(cause, "source"), i, row)
        if (json_i64(row, "line", 0) == json_i64(cause, "line", -1))
            return json_str(row, "text", "") + strspn(json_str(row, "text", ""), " \t");
    return json_str(cause, "text", "");
}

/* The place that a cause with a file and a line names in the program: a new object; NULL: none. */
static json_t *locate_place_in_file(const char *program, const json_t *cause)
{
    const char *file = json_str(cause, "file", NULL), *words = locate_words(cause);
    int64_t line = json_i64(cause, "line", 0);
    char name[WORDS];

    if (!file || !locate_file(program, file, line, words, name, sizeof name))
        return NULL;
    return json_pack("{s:I,s:o,s:s,s:I,s:s?,s:s}", "line", (json_int_t)line, "text", json_utf8(words, strlen(words)),
                     "source", file, "source_line", (json_int_t)line, "kernel", json_str(cause, "kernel", NULL),
                     "file", name);
}

/* The place {"line", "text", ..} of a cause in the user's file. New; NULL: it is not known. */
static json_t *locate_place(const char *program, const json_t *cause)
{
    const char *file = json_str(cause, "file", NULL), *kernel = json_str(cause, "kernel", NULL);
    int64_t line = json_i64(cause, "line", 0), at = file ? locate_source(program, line, locate_words(cause)) : line;
    char text[WORDS];

    if (at < 1 || !place_line(program, at, text, sizeof text))
        return NULL;
    return json_pack("{s:I,s:o,s:s?,s:o,s:s?,s:n}", "line", (json_int_t)at, "text", json_utf8(text, strlen(text)),
                     "source", file, "source_line", file ? json_integer(line) : json_null(), "kernel", kernel,
                     "file");
}

json_t *locate_verdict(const json_t *verdict, const char *text, size_t n, const char *joined)
{
    const json_t *x = json_object_get(verdict, "extraction"), *reason = record_reason(verdict);
    size_t from = (size_t)json_i64(x, "offset", 0), bytes = (size_t)json_i64(x, "bytes", 0);
    char *program;
    json_t *place = reason && joined ? locate_place_in_file(joined, locate_cause(verdict, reason)) : NULL;
    int64_t before = 0;

    if (place)
        return place;
    if (!reason || from > n || bytes > n - from)
        return json_null();
    for (size_t i = 0; i < from; i++)
        before += text[i] == '\n';
    program = xstrndup(text + from, bytes);
    place = locate_place(program, locate_cause(verdict, reason));
    free(program);
    if (place)
        json_object_set_new(place, "line", json_integer(json_i64(place, "line", 0) + before));
    return place ? place : json_null();
}
