/* place.c - see place.h. */
#include "eval/verdict/place.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/lines.h"

/* The last place in text where word begins, or NULL. */
static const char *place_last_of(const char *text, const char *word)
{
    const char *found = NULL;

    for (const char *p = strstr(text, word); p; p = strstr(p + 1, word))
        found = p;
    return found;
}

int64_t place_python(const char *output)
{
    static const char frame[] = "File \"candidate.py\", line ", thread[] = "(most recent call first):";
    const char *crash = place_last_of(output, "Fatal Python error: "), *late = place_last_of(output, "Timeout (");
    const char *from = crash > late ? crash : late, *main_thread, *at;

    if (!from)
        return 0;
    /* a crash tells of its own thread first */
    main_thread = from == crash ? strstr(from, thread) : place_last_of(from, thread);
    at = main_thread ? strstr(main_thread, frame) : NULL;
    if (!at && from == late)
        at = strstr(from, frame);
    return at ? strtoll(at + sizeof frame - 1, NULL, 10) : 0;
}

#define PRINTED_MARK '\x1e' /* then four digits: how many bytes follow */

void place_printed(const char *output, size_t most, struct buf *out)
{
    const char *at = output;

    while ((at = strchr(at, PRINTED_MARK)) && out->n < most) {
        char digits[5] = {0};
        size_t n, there;

        strncpy(digits, at + 1, 4);
        at += 1 + strlen(digits);
        n = strtoul(digits, NULL, 16);
        there = strnlen(at, n);
        buf_add(out, at, there < most - out->n ? there : most - out->n);
        at += there;
    }
}

bool place_line(const char *text, int64_t line, char *ret, size_t n)
{
    text = lines_find(text, line);
    if (!text)
        return false;
    text += strspn(text, " \t");
    snprintf(ret, n, "%.*s", (int)strcspn(text, "\r\n"), text);
    return *ret != 0;
}

/* ---- arguments and tensors ---- */

bool place_argument(const char *source, int i, char *ret, size_t n)
{
    const char *p = strstr(source, "def forward(self");
    int depth = 0;

    p = p ? p + strlen("def forward(self") : NULL;
    for (i++; p && *p && i > 0; p++) {
        depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
        if (depth < 0)
            return false;
        i -= *p == ',' && depth == 0;
    }
    if (!p || i > 0)
        return false;
    p += strspn(p, " \t\r\n");
    for (size_t k = 0; isalnum((unsigned char)p[k]) || p[k] == '_'; k++)
        snprintf(ret, n, "%.*s", (int)k + 1, p);
    return isalnum((unsigned char)*p) || *p == '_';
}

/* Where the kernel's parameters begin, behind the '(' of its declaration. A launch "name<<<..>>>(" is none. NULL: the
 * source does not declare it. */
static const char *place_parameters(const char *source, const char *kernel)
{
    size_t n = strcspn(kernel, "<");
    char name[96];

    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), kernel);
    for (const char *p = *name ? strstr(source, name) : NULL; p; p = strstr(p + 1, name)) {
        const char *end = p + strlen(name);

        end += strspn(end, " \t\r\n");
        if (*end == '(' && (p == source || (!isalnum((unsigned char)p[-1]) && p[-1] != '_')))
            return end + 1;
    }
    return NULL;
}

/* Where a parameter ends: its comma, or the list's bracket. */
static const char *place_parameter_end(const char *p)
{
    for (int depth = 0; *p; p++) {
        if (depth == 0 && (*p == ',' || *p == ')'))
            break;
        depth += (*p == '(' || *p == '[' || *p == '<') - (*p == ')' || *p == ']' || *p == '>');
    }
    return p;
}

/* Parses one parameter of a kernel's list, [p, p + n): its name and its element type. */
static void place_take_parameter(const char *p, size_t n, int index, struct place_parameter *ret)
{
    static const struct {
        const char *type, *dtype;
        int bytes;
    } types[] = {{"float", "float32", 4},        {"double", "float64", 8},  {"__half", "float16", 2},
                 {"half", "float16", 2},         {"__nv_bfloat16", "bfloat16", 2}, {"int64_t", "int64", 8},
                 {"long long", "int64", 8},      {"int", "int32", 4}};
    size_t from = n;

    *ret = (struct place_parameter){.index = index};
    while (from > 0 && (isalnum((unsigned char)p[from - 1]) || p[from - 1] == '_'))
        from--;
    snprintf(ret->name, sizeof ret->name, "%.*s", (int)(n - from), p + from);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const char *at = memmem(p, from, types[i].type, strlen(types[i].type));
        const char *behind = at ? at + strlen(types[i].type) : NULL;

        if (at && !isalnum((unsigned char)*behind) && *behind != '_' &&
            (at == p || (!isalnum((unsigned char)at[-1]) && at[-1] != '_')) && !memmem(p, from, "unsigned", 8)) {
            ret->dtype = types[i].dtype;
            ret->bytes = types[i].bytes;
            return;
        }
    }
}

bool place_pointer(const char *source, const char *kernel, int pointer, int pointers, struct place_parameter *ret)
{
    const char *p = source ? place_parameters(source, kernel) : NULL, *end;
    int seen = 0;

    for (int i = 0; p && *p; i++, p = end + 1) {
        size_t n;

        end = place_parameter_end(p);
        n = (size_t)(end - p);
        while (n && isspace((unsigned char)p[n - 1]))
            n--;
        if (memchr(p, '*', n) && ++seen == pointer)
            place_take_parameter(p, n, i, ret);
        if (*end != ',')
            break;
    }
    return pointer > 0 && seen == pointers && pointer <= seen && *ret->name;
}

/* Where no shape is known, its size. */
static void memory_shape(const json_t *memory, struct buf *out)
{
    const json_t *d;
    size_t i;

    if (!json_object_get(memory, "shape")) {
        buf_addf(out, "%lld bytes", (long long)json_i64(memory, "bytes", 0));
        return;
    }
    json_array_foreach(json_object_get(memory, "shape"), i, d)
        buf_addf(out, "%s%lld", i ? " x " : "", (long long)json_integer_value(d));
    buf_addf(out, " %s", json_str(memory, "dtype", ""));
}

/* Elements of the memory's shape; 0: it has none. */
static int64_t memory_elements(const json_t *memory)
{
    const json_t *d;
    int64_t n = 1;
    size_t i;

    json_array_foreach(json_object_get(memory, "shape"), i, d)
        n *= json_integer_value(d);
    return json_object_get(memory, "shape") ? n : 0;
}

void memory_words(const char *message, const json_t *memory, struct buf *out)
{
    static const char unnamed[] = "'device memory' (";
    const char *at = strstr(message, unnamed), *end = at ? strchr(at, ')') : NULL;
    int64_t n = memory_elements(memory), item = n > 0 ? json_i64(memory, "bytes", 0) / n : 0;

    if (!end) {
        buf_adds(out, message);
        return;
    }
    buf_add(out, message, (size_t)(at - message));
    buf_addf(out, "'%s' (%s, ", json_str(memory, "tensor", "?"), json_str(memory, "role", "?"));
    memory_shape(memory, out);
    buf_adds(out, ")");
    if (item > 0 && item * n == json_i64(memory, "bytes", 0))
        buf_addf(out, "%s element %lld of %lld%s", end[1] ? "," : ":", (long long)(json_i64(memory, "at", 0) / item),
                 (long long)n, end[1] && end[1] != ',' ? "," : "");
    buf_adds(out, end + 1);
}

/* ---- operators ---- */

/* "aten::add_.Tensor" -> "add_"; false for an operator of another namespace. */
static bool place_base_name(const char *op, char *out, size_t n)
{
    const char *colon = strstr(op, "::"), *name = colon ? colon + 2 : op;
    size_t len = strcspn(name, ".");

    if (colon && strncmp(op, "aten::", 6))
        return false;
    snprintf(out, n, "%.*s", (int)(len < n ? len : n - 1), name);
    return true;
}

static bool place_word_char(int c)
{
    return isalnum(c) || c == '_';
}

/* Names that a Python programmer writes for an operator that dispatches under another name. */
static const char *const spelled[][2] = {
    {"addmm", "Linear"}, {"addmm", "linear"}, {"linear", "Linear"}, {"mm", "@"}, {"mm", "matmul"}, {"bmm", "matmul"},
    {"matmul", "@"}, {"convolution", "conv"}, {"mul", "*"}, {"add", "+"}, {"sub", "-"}, {"div", "/"},
    {"clamp_min", "relu"}, {"native_layer_norm", "layer_norm"}, {"native_batch_norm", "batch_norm"}, {NULL, NULL}};

/* The first line, from 1, that holds the word in code and not behind '#'; its text goes to ret_text. -1: none. */
static int place_find_word(const char *source, const char *word, char *ret_text, size_t n_text)
{
    size_t n = strlen(word);
    int line = 1;

    for (const char *p = source, *end; *p; p = *end ? end + 1 : end, line++) {
        end = p + strcspn(p, "\n");
        for (const char *q = p; q + n <= end; q++) {
            bool edges = !place_word_char((unsigned char)word[0]) ||
                         ((q == p || !place_word_char((unsigned char)q[-1])) && !place_word_char((unsigned char)q[n]));

            if (*q == '#')
                break;
            if (memcmp(q, word, n) || !edges)
                continue;
            while (p < end && isspace((unsigned char)*p))
                p++;
            snprintf(ret_text, n_text, "%.*s", (int)(end - p < (long)n_text - 1 ? end - p : (long)n_text - 1), p);
            return line;
        }
    }
    return -1;
}

/* Tries the spellings of one operator over a text, the telling ones (torch.relu, F.relu, .relu) before the bare word,
 * which may be the candidate's own function. */
static int place_find_spelling(const char *text, const char *name, char *ret_text, size_t n_text)
{
    static const char *const prefixes[] = {"torch.", "F.", "functional.", "nn.", ""};
    char word[128];
    int line = -1;

    for (size_t i = 0; line < 0 && i < sizeof prefixes / sizeof *prefixes; i++) {
        snprintf(word, sizeof word, "%s%s", prefixes[i], name);
        line = place_find_word(text, word, ret_text, n_text);
    }
    for (size_t i = 0; line < 0 && spelled[i][0]; i++)
        if (!strcmp(spelled[i][0], name) && place_word_char((unsigned char)spelled[i][1][0]))
            line = place_find_word(text, spelled[i][1], ret_text, n_text);
    return line;
}

int place_operator(const char *source, const char *op, char *ret_text, size_t n_text)
{
    char name[96];
    const char *forward = strstr(source, "def forward"), *bare = name;
    int line = -1, skip = 0;
    size_t n;

    if (!place_base_name(op, name, sizeof name))
        return -1;
    while (*bare == '_')
        bare++;
    n = strlen(name);
    if (forward) {
        for (const char *p = source; p < forward; p++)
            skip += *p == '\n';
        line = place_find_spelling(forward, bare, ret_text, n_text);
        if (line > 0)
            return line + skip;
    }
    line = place_find_spelling(source, bare, ret_text, n_text);
    if (line < 0 && n > 1 && name[n - 1] == '_') {
        name[n - 1] = 0;
        line = place_find_spelling(source, bare, ret_text, n_text);
    }
    return line;
}
