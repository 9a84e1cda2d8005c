/* extract.c - see extract.h. One pass over lines; thinking is removed by range, never by copying, so that offsets
 * into the original text stay true. */
#include "task/extract.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct extract_span {
    size_t from, to;
};

struct fence {
    char mark;  /* '`' or '~', 0 outside a fence */
    int width;
    bool python;
    size_t body;
};

static const char *extract_find(const char *text, size_t from, size_t to, const char *word)
{
    return from < to ? memmem(text + from, to - from, word, strlen(word)) : NULL;
}

/* The text that counts: behind the last closed thought, before an unclosed one. Thoughts between two pieces of an
 * answer do not occur in practice; the last piece is the answer. */
static struct extract_span extract_visible(const char *text, size_t n, bool *ret_dropped)
{
    struct extract_span v = {0, n};
    const char *open, *close;

    while ((close = extract_find(text, v.from, n, "</think>"))) {
        v.from = (size_t)(close - text) + strlen("</think>");
        *ret_dropped = true;
    }
    if ((open = extract_find(text, v.from, n, "<think>"))) {
        v.to = (size_t)(open - text);
        *ret_dropped = true;
    }
    return v;
}

/* True where a fence's first line says Python, or nothing. */
static bool extract_python_info(const char *s, size_t n)
{
    size_t w = 0;

    while (n && (*s == ' ' || *s == '\t'))
        s++, n--;
    while (w < n && !isspace((unsigned char)s[w]) && s[w] != '{')
        w++;
    return w == 0 || (w == 6 && !strncasecmp(s, "python", 6)) || (w == 7 && !strncasecmp(s, "python3", 7)) ||
           (w == 2 && !strncasecmp(s, "py", 2));
}

/* extract_fence_line := ' '{0,3} mark{3,} rest. Returns the run length, 0 if the line is no fence. */
static int extract_fence_line(const char *s, size_t n, char *ret_mark, size_t *ret_rest)
{
    size_t i = 0, run;

    while (i < n && i < 4 && s[i] == ' ')
        i++;
    if (i == 4 || i == n || (s[i] != '`' && s[i] != '~'))
        return 0;
    for (run = i; run < n && s[run] == s[i]; run++)
        ;
    if (run - i < 3 || (s[i] == '`' && memchr(s + run, '`', n - run)))
        return 0;
    *ret_mark = s[i];
    *ret_rest = run;
    return run - i > 1000 ? 1000 : (int)(run - i);
}

static bool extract_blank(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isspace((unsigned char)s[i]))
            return false;
    return true;
}

/* True if a line of code reads 'class ModelNew' followed by a non-identifier character. */
static bool extract_defines_modelnew(const char *code, size_t n)
{
    static const char name[] = "ModelNew";
    const char *end = code + n, *p = code, *nl;

    for (; p < end; p = nl + 1) {
        const char *q = p;

        nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl)
            nl = end;
        while (q < nl && (*q == ' ' || *q == '\t'))
            q++;
        if (nl - q < 14 || memcmp(q, "class", 5) || (q[5] != ' ' && q[5] != '\t'))
            continue;
        for (q += 5; q < nl && (*q == ' ' || *q == '\t');)
            q++;
        if (nl - q > 8 && !memcmp(q, name, 8) && !isalnum((unsigned char)q[8]) && q[8] != '_')
            return true;
    }
    return false;
}

/* A line of code reads 'def custom_kernel(', GPU MODE's form of a program. */
static bool extract_defines_custom_kernel(const char *code, size_t n)
{
    static const char head[] = "def custom_kernel(";
    const char *at = code, *end = code + n;

    while ((at = extract_find(code, (size_t)(at - code), n, head)) && at > code && at[-1] != '\n')
        at++;
    return at && at < end;
}

bool extract_defines_program(const char *code, size_t n)
{
    return extract_defines_modelnew(code, n) || extract_defines_custom_kernel(code, n);
}

/* A finished fence: the first one is the fallback, a later one that defines ModelNew wins. */
static void extract_take(const char *text, struct extraction *x, const struct fence *f, size_t to, bool closed)
{
    size_t n = to - f->body;
    bool cls = f->python && extract_defines_modelnew(text + f->body, n);
    bool model = f->python && extract_defines_program(text + f->body, n);

    if (x->n_fences == 0 || cls || (model && !x->has_class)) {
        x->has_class |= cls;
        x->found = true;
        x->how = model ? "last fence with ModelNew" : "first fence";
        x->fence = x->n_fences;
        x->offset = f->body;
        x->n = n;
        x->closed = closed;
        x->defines_modelnew = model || extract_defines_program(text + f->body, n);
    }
    x->n_fences++;
}

/* Finds the code fences in the part v of the text and chooses the program among them. */
static void extract_scan_fences(const char *text, struct extract_span v, struct extraction *x)
{
    struct fence f = {0};
    size_t line, next, rest;

    for (line = v.from; line < v.to; line = next) {
        const char *nl = memchr(text + line, '\n', v.to - line);
        size_t n = (nl ? (size_t)(nl - text) : v.to) - line;
        char mark = 0;
        int width = extract_fence_line(text + line, n, &mark, &rest);

        next = nl ? line + n + 1 : v.to;
        if (!width)
            continue;
        if (!f.mark) {
            f = (struct fence){mark, width, extract_python_info(text + line + rest, n - rest), next};
        } else if (mark == f.mark && width >= f.width && extract_blank(text + line + rest, n - rest)) {
            extract_take(text, x, &f, line, true);
            f.mark = 0;
        }
    }
    if (f.mark)
        extract_take(text, x, &f, v.to, false);
}

/* ---- named fences ---- */

/* The file name behind the first word of an info string, into out; false: none. */
static bool extract_named(const char *s, size_t n, char *out, size_t size)
{
    static const char *const keys[] = {"title=", "file=", "filename=", "name="};
    char info[256], *rest, *word;

    snprintf(info, sizeof info, "%.*s", (int)(n < 255 ? n : 255), s);
    if (!strtok_r(info, " \t\r{}", &rest) || !(word = strtok_r(NULL, " \t\r{}", &rest)))
        return false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strncmp(word, keys[i], strlen(keys[i])))
            word += strlen(keys[i]);
    word += strspn(word, "\"'");
    word[strcspn(word, "\"'")] = 0;
    snprintf(out, size, "%s", word);
    return strchr(word, '.') != NULL;
}

void extract_files(const char *text, size_t n, const struct extraction *x, extract_take_file *take, void *ctx)
{
    bool dropped;
    struct extract_span v = extract_visible(text, n, &dropped);
    struct fence f = {0};
    char name[256] = "";
    size_t next, rest;

    for (size_t line = v.from; line < v.to; line = next) {
        const char *nl = memchr(text + line, '\n', v.to - line);
        size_t len = (nl ? (size_t)(nl - text) : v.to) - line;
        char mark = 0;
        int width = extract_fence_line(text + line, len, &mark, &rest);

        next = nl ? line + len + 1 : v.to;
        if (width && !f.mark) {
            f = (struct fence){mark, width, false, next};
            if (!extract_named(text + line + rest, len - rest, name, sizeof name))
                name[0] = 0;
        } else if (width && mark == f.mark && width >= f.width && extract_blank(text + line + rest, len - rest)) {
            if (name[0] && f.body != x->offset)
                take(name, text + f.body, line - f.body, ctx);
            f.mark = 0;
        }
    }
}

/* Takes the whole text as the program. */
static void extract_whole(const char *text, size_t n, struct extraction *x)
{
    x->found = n > 0;
    x->how = "file";
    x->closed = true;
    x->offset = 0;
    x->n = n;
    x->defines_modelnew = extract_defines_program(text, n);
}

void extract_code(const char *text, size_t n, enum extract_kind kind, struct extraction *ret)
{
    struct extraction x = {.how = "none", .fence = -1};

    if (kind != EXTRACT_FILE)
        extract_scan_fences(text, extract_visible(text, n, &x.think_dropped), &x);
    if (kind == EXTRACT_FILE || (kind == EXTRACT_AUTO && x.n_fences == 0 && !x.think_dropped))
        extract_whole(text, n, &x);
    *ret = x;
}

bool extract_is_whole(const char *text, bool ended)
{
    struct extraction x;

    if (ended)
        return true;
    extract_code(text, strlen(text), EXTRACT_RESPONSE, &x);
    return x.found && x.closed && x.defines_modelnew;
}

json_t *extract_json(const struct extraction *x)
{
    return json_pack("{s:b,s:s,s:i,s:i,s:b,s:b,s:b,s:I,s:I}", "found", x->found, "how", x->how, "fence", x->fence,
                     "fences", x->n_fences, "closed", x->closed, "think_dropped", x->think_dropped, "defines_modelnew",
                     x->defines_modelnew, "offset", (json_int_t)x->offset, "bytes", (json_int_t)x->n);
}
