/* build_log.c - reading what g++, nvcc, ptxas and ld say; see build_log.h. */
#include "eval/build/build_log.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/lines.h"

enum { MAX_DIAGNOSTICS = 8, CONTEXT = 2 };

struct build_log_place {
    char file[256];
    int line, column;
};

/* #line lets a source claim any number: those beyond any file are 0, 'unknown'. */
static int build_log_line_number(const char *digits, char **ret_end)
{
    long v = strtol(digits, ret_end, 10);

    return v > 0 && v < 100000000 ? (int)v : 0;
}

/* "FILE:LINE[:COL]:" or "FILE:LINE[:COL]," at the start of s; returns what follows, or NULL. */
static const char *build_log_parse_place(const char *s, size_t n, struct build_log_place *p)
{
    const char *end = s + n, *c = memchr(s, ':', n);
    char *next;

    while (c && c + 1 < end && !(c[1] >= '0' && c[1] <= '9'))
        c = memchr(c + 1, ':', (size_t)(end - c - 1));
    if (!c || c + 1 >= end || c == s || (size_t)(c - s) >= sizeof p->file)
        return NULL;
    memcpy(p->file, s, (size_t)(c - s));
    p->file[c - s] = 0;
    p->line = build_log_line_number(c + 1, &next);
    p->column = 0;
    if (*next == ':' && next[1] >= '0' && next[1] <= '9')
        p->column = build_log_line_number(next + 1, &next);
    return *next == ':' || *next == ',' ? next + 1 : NULL;
}

/* nvcc's own form, "FILE(LINE): "; as build_log_parse_place. */
static const char *build_log_parse_nvcc_place(const char *s, size_t n, struct build_log_place *p)
{
    const char *end = s + n, *c = memchr(s, '(', n);
    char *next;

    if (!c || c == s || c + 1 >= end || !(c[1] >= '0' && c[1] <= '9') || (size_t)(c - s) >= sizeof p->file ||
        memchr(s, ' ', (size_t)(c - s)))
        return NULL;
    memcpy(p->file, s, (size_t)(c - s));
    p->file[c - s] = 0;
    p->line = build_log_line_number(c + 1, &next);
    p->column = 0;
    return next + 1 < end && next[0] == ')' && next[1] == ':' ? next + 2 : NULL;
}

/* "... at line 6 of cuda_source": where nvcc says that an error in a header began. */
static bool build_log_parse_nvcc_origin(const char *s, size_t n, struct build_log_place *p)
{
    const char *at = memmem(s, n, "at line ", 8);
    char *next;
    size_t k;

    if (!at)
        return false;
    p->line = build_log_line_number(at + 8, &next);
    p->column = 0;
    if (strncmp(next, " of ", 4))
        return false;
    next += 4 + (next[4] == '"');
    k = strcspn(next, "\" \n");
    if (!k || k >= sizeof p->file)
        return false;
    memcpy(p->file, next, k);
    p->file[k] = 0;
    return true;
}

/* The source text that the compiler calls 'file', or NULL if it is not the candidate's. */
static const char *build_log_source_of(const json_t *req, const char *file)
{
    static const char *const kinds[] = {"cuda", "cpp"};

    for (int k = 0; k < 2; k++) {
        char key[32], name[64];
        const json_t *list, *names;
        snprintf(key, sizeof key, "%s_sources", kinds[k]);
        list = json_object_get(req, key);
        snprintf(key, sizeof key, "%s_names", kinds[k]);
        names = json_object_get(req, key);
        for (size_t i = 0; i < json_array_size(list); i++) {
            const char *given = json_string_value(json_array_get(names, i));
            if (given && *given)
                snprintf(name, sizeof name, "%s", given);
            else if (json_array_size(list) == 1)
                snprintf(name, sizeof name, "%s_source", kinds[k]);
            else
                snprintf(name, sizeof name, "%s_sources[%zu]", kinds[k], i);
            if (!strcmp(name, file))
                return json_string_value(json_array_get(list, i));
        }
    }
    return NULL;
}

/* The source's lines around a line, as [{"line", "text"}]; a #line directive ends it. The caller owns the list. */
static json_t *build_log_excerpt(const char *source, int line)
{
    const char *s = lines_find(source, line);
    json_t *out = json_array();
    int at = line;

    for (; s && s > source && at > line - CONTEXT; at--) {
        const char *before = s - 1;
        while (before > source && before[-1] != '\n')
            before--;
        if (lines_directive(before))
            break;
        s = before;
    }
    for (; s && *s && at <= line + CONTEXT && !lines_directive(s); at++) {
        size_t n = strcspn(s, "\n");
        json_array_append_new(out, json_pack("{s:i,s:o}", "line", at, "text", json_utf8(s, n > 300 ? 300 : n)));
        s += n + (s[n] == '\n');
    }
    return out;
}

/* Where an error is, in the form of build.h; new reference. */
static json_t *build_log_place_of(const json_t *req, const struct build_log_place *p)
{
    const char *source = p->line > 0 ? build_log_source_of(req, p->file) : NULL, *name = path_name(p->file);

    return json_pack("{s:o,s:o,s:o,s:o}", "file", *name ? json_utf8(name, strlen(name)) : json_null(), "line",
                     p->line > 0 ? json_integer(p->line) : json_null(), "column",
                     p->column > 0 ? json_integer(p->column) : json_null(), "source",
                     build_log_excerpt(source, p->line));
}

static bool build_log_has_source(const json_t *diagnostic)
{
    return json_array_size(json_object_get(diagnostic, "source")) > 0;
}

/* The length without a guess of the compiler's that names what its own headers hide: "; did you mean '__pstl::v1'?"
 * CUDA's names begin in the same way and are one word: "; did you mean '__syncthreads'?" stays. */
static size_t build_log_without_guess(const char *message, size_t n)
{
    static const char ask[] = "; did you mean '__";
    const char *guess = memmem(message, n, ask, sizeof ask - 1), *name, *end;

    if (!guess)
        return n;
    name = guess + sizeof ask - 1;
    end = memchr(name, '\'', n - (size_t)(name - message));
    if (!end || memmem(name, (size_t)(end - name), "::", 2) || !strncmp(name, "builtin_", 8) ||
        !strncmp(name, "gnu_", 4))
        return (size_t)(guess - message);
    return n;
}

/* A diagnostic {"file", "line", "message", ..} of at most 500 bytes of message. New. */
static json_t *build_log_diagnostic(const json_t *req, const struct build_log_place *p, const char *message, size_t n)
{
    json_t *d = build_log_place_of(req, p);

    n = build_log_without_guess(message, n);
    json_object_set_new(d, "message", json_utf8(message, n > 500 ? 500 : n));
    return d;
}

/* Does the line say "error: ..." after its place? Points at the text behind it. */
static const char *build_log_error_text(const char *after)
{
    while (*after == ' ')
        after++;
    if (!strncmp(after, "error: ", 7))
        return after + 7;
    if (!strncmp(after, "fatal error: ", 13))
        return after + 13;
    if (!strncmp(after, "catastrophic error: ", 20))
        return after + 20;
    return NULL;
}

static const char *build_log_find_in(const char *s, size_t n, const char *what)
{
    return memmem(s, n, what, strlen(what));
}

/* "ptxas error   : Entry function 'k' uses too much shared data", "nvcc fatal   : ...": errors without a place. */
static const char *build_log_tool_error(const char *s, size_t n)
{
    static const char *const heads[] = {"ptxas error", "ptxas fatal", "nvcc fatal", "ptxas /"};
    const char *p;

    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (n > strlen(heads[i]) && !strncmp(s, heads[i], strlen(heads[i])) && (p = memchr(s, i == 3 ? ';' : ':', n))) {
            p++;
            while (p < s + n && *p == ' ')
                p++;
            return p;
        }
    return NULL;
}

/* ld: "part1.o: in function `f': cuda_source:12: undefined reference to `g(...)'". */
static const char *build_log_link_error(const char *s, size_t n)
{
    const char *p = build_log_find_in(s, n, "undefined reference to");

    return p ? p : build_log_find_in(s, n, "multiple definition of");
}

json_t *build_log_parse(const char *log, const json_t *req)
{
    json_t *out = json_array();
    struct build_log_place p, own = {"", 0, 0};

    for (const char *s = log; *s && json_array_size(out) < MAX_DIAGNOSTICS;) {
        size_t n = strcspn(s, "\n");
        const char *after = build_log_parse_place(s, n, &p), *text, *ld = build_log_link_error(s, n),
            *tool = build_log_tool_error(s, n);
        if (!after)
            after = build_log_parse_nvcc_place(s, n, &p);
        text = after && !tool ? build_log_error_text(after) : NULL;
        bool ours = after && build_log_source_of(req, p.file);
        json_t *last = json_array_get(out, json_array_size(out) - 1);
        if (text) {
            json_array_append_new(out, build_log_diagnostic(req, ours || !own.line ? &p : &own, text,
                                                            (size_t)(s + n - text)));
            own.line = 0;
        } else if (tool) {
            struct build_log_place none = {"", 0, 0};
            json_array_append_new(out, build_log_diagnostic(req, &none, tool, (size_t)(s + n - tool)));
        } else if (last && !build_log_has_source(last) && build_log_parse_nvcc_origin(s, n, &p) &&
                   build_log_source_of(req, p.file)) {
            json_object_update_new(last, build_log_place_of(req, &p));
        } else if (ld) {
            const char *at = build_log_find_in(s, n, "cuda_source") ? build_log_find_in(s, n, "cuda_source")
                : build_log_find_in(s, n, "cpp_source");
            struct build_log_place none = {"", 0, 0};
            if (!at || !build_log_parse_place(at, (size_t)(s + n - at), &p))
                p = none;
            json_array_append_new(out, build_log_diagnostic(req, &p, ld, (size_t)(s + n - ld)));
        } else if (ours && last && build_log_find_in(s, n, "in expansion of macro") && !build_log_has_source(last)) {
            json_object_update_new(last, build_log_place_of(req, &p)); /* an error inside a macro of ours */
        } else if (ours) {
            own = p; /* "required from here": where an error in a header began */
        }
        s += n + (s[n] == '\n');
    }
    return out;
}

/* Lines about our own headers explain nothing to the author of a kernel. */
static bool build_log_keep_line(const char *s, size_t n)
{
    return !build_log_find_in(s, n, "note:") && !build_log_find_in(s, n, "In file included from") &&
           !build_log_find_in(s, n, "                 from ") &&
           !build_log_find_in(s, n, "collect2:") && !build_log_find_in(s, n, "note #") &&
               !build_log_find_in(s, n, "detected in the compilation of");
}

/* Absolute paths are shortened to their last part. */
static void build_log_add_short(struct buf *out, const char *s, size_t n)
{
    while (n && *s == '/') {
        size_t word = strcspn(s, " :\n"), len = word < n ? word : n, cut = len;
        while (cut && s[cut - 1] != '/')
            cut--;
        s += cut, n -= cut;
    }
    buf_add(out, s, n);
    buf_addc(out, '\n');
}

char *build_log_trim(const char *log, size_t max)
{
    struct buf b;

    buf_init(&b, max + 4096);
    for (const char *s = log; *s;) {
        size_t n = strcspn(s, "\n");
        if (build_log_keep_line(s, n)) {
            if (b.n + n > max) {
                buf_adds(&b, "...\n");
                break;
            }
            build_log_add_short(&b, s, n);
        }
        s += n + (s[n] == '\n');
    }
    return buf_detach(&b);
}
