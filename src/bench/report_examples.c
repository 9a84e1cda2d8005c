/* report_examples.c - programs of the last stage with what the judge said: passed, repaired after feedback, failed. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "bench/report_parts.h"
#include "bench/svg.h"
#include "task/extract.h"

/* ---- code ---- */

static const char *const keywords[] = {
    "and", "as", "assert", "auto", "bool", "break", "case", "char", "class", "const", "continue", "def", "do", "double",
    "elif", "else", "extern", "False", "float", "for", "from", "half", "if", "import", "in", "inline", "int", "int64_t",
    "is", "lambda", "long", "namespace", "None", "not", "or", "pass", "raise", "return", "self", "short", "size_t",
    "static", "struct", "template", "True", "typename", "unsigned", "using", "void", "while", "with", "__global__",
    "__device__", "__shared__", "__restrict__",
    "__forceinline__", "__launch_bounds__", "__syncthreads", "__syncwarp", "threadIdx", "blockIdx", "blockDim",
    "gridDim"};

static bool examples_is_keyword(const char *s, size_t n)
{
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strlen(keywords[i]) == n && !memcmp(keywords[i], s, n))
            return true;
    return false;
}

static void examples_piece(struct buf *out, const char *class, const char *s, size_t n)
{
    char *t = xstrndup(s, n);

    if (class)
        buf_addf(out, "<span class=%s>", class);
    html_text(out, t);
    if (class)
        buf_adds(out, "</span>");
    free(t);
}

static size_t examples_string_length(const char *s)
{
    size_t n = 1;

    while (s[n] && s[n] != '\n' && s[n] != *s)
        n += s[n] == '\\' && s[n + 1] ? 2 : 1;
    return s[n] == *s ? n + 1 : n;
}

static bool examples_is_preprocessor(const char *s)
{
    return !strncmp(s, "#include", 8) || !strncmp(s, "#define", 7) || !strncmp(s, "#pragma", 7) ||
           !strncmp(s, "#if", 3) ||
           !strncmp(s, "#endif", 6) || !strncmp(s, "#else", 5) || !strncmp(s, "#undef", 6);
}

/* The next token's length and class. The text of triple-quoted strings is CUDA: it is coloured as code, not as a
 * string. */
static size_t examples_next_token(const char *s, bool *in_triple, const char **class)
{
    size_t n = 1;

    *class = NULL;
    if (!strncmp(s, "'''", 3) || !strncmp(s, "\"\"\"", 3)) {
        *in_triple = !*in_triple;
        *class = "st";
        return 3;
    }
    if ((*s == '#' && !examples_is_preprocessor(s)) || (*in_triple && s[0] == '/' && s[1] == '/')) {
        *class = "co";
        return strcspn(s, "\n");
    }
    if (*s == '#' || *s == '@') {
        *class = "pp";
        return 1 + strspn(s + 1, "abcdefghijklmnopqrstuvwxyz");
    }
    if (*s == '"' || (*s == '\'' && !*in_triple)) {
        *class = "st";
        return examples_string_length(s);
    }
    if (isdigit((unsigned char)*s)) {
        *class = "nu";
        return strspn(s, "0123456789abcdefABCDEFxX._");
    }
    if (isalpha((unsigned char)*s) || *s == '_') {
        while (isalnum((unsigned char)s[n]) || s[n] == '_')
            n++;
        *class = examples_is_keyword(s, n) ? "kw" : s[n] == '(' ? "fn" : NULL;
    }
    return n;
}

void report_code(struct buf *out, const char *code)
{
    bool in_triple = false;

    buf_adds(out, "<pre class=code>");
    while (*code) {
        const char *class;
        size_t n = examples_next_token(code, &in_triple, &class);
        examples_piece(out, class, code, n);
        code += n;
    }
    buf_adds(out, "</pre>");
}

/* ---- cards ---- */

static const char *examples_status_of(const json_t *line)
{
    return json_str(json_object_get(line, "verdict"), "status", "infra");
}

static const char *examples_category_of(const json_t *line)
{
    return json_str(json_object_get(line, "verdict"), "category", "");
}

static const char *examples_sample_text(const struct report_stage *s, const json_t *line, int64_t turn)
{
    char *key = xasprintf("%s/%lld/%lld", json_str(line, "task", ""), (long long)json_i64(line, "sample", 0),
                          (long long)turn);
    const char *text = json_string_value(json_object_get(s->samples, key));

    free(key);
    return text;
}

static void examples_program(struct buf *out, const char *text)
{
    struct extraction x;
    char *code;

    extract_code(text, strlen(text), EXTRACT_AUTO, &x);
    code = x.found ? xstrndup(text + x.offset, x.n) : xstrdup(text);
    report_code(out, code);
    free(code);
}

static void examples_task_code(struct buf *out, const struct report_stage *s, const char *task)
{
    char *file = xasprintf("%s.py", task), *path = path_join(json_str(s->bench, "suite", ""), file);
    struct buf b;

    buf_init(&b, 1 << 18);
    if (file_exists(path) && file_read(path, &b, NULL) == 0) {
        buf_adds(out, "<details class=task><summary>the task</summary>");
        report_code(out, b.p);
        buf_adds(out, "</details>");
    }
    buf_free(&b);
    free(file);
    free(path);
}

static void examples_verdict_box(struct buf *out, const json_t *line)
{
    const json_t *v = json_object_get(line, "verdict"), *c = json_object_get(v, "correctness"),
        *k = json_object_get(v, "compile");
    bool passed = !strcmp(examples_status_of(line), "passed");
    const char *feedback = json_str(v, "feedback", "");

    buf_addf(out, "<div class=\"verdict %s\"><div class=meta>", passed ? "ok" : "bad");
    if (json_object_get(k, "ms"))
        buf_addf(out, "compiled in %.0f ms &middot; ", json_f64(k, "ms", 0));
    if (json_object_get(c, "trials"))
        buf_addf(out, "%lld of %lld trials correct &middot; ", (long long)json_i64(c, "passed", 0),
                 (long long)json_i64(c, "trials", 0));
    if (json_is_number(json_object_get(v, "reward")))
        buf_addf(out, "reward %.2f", json_f64(v, "reward", 0));
    buf_adds(out, "</div>");
    if (*feedback) {
        buf_adds(out, "<pre class=feedback>");
        html_text(out, feedback);
        buf_adds(out, "</pre>");
    }
    buf_adds(out, "</div>");
}

static void examples_badge(struct buf *out, const json_t *line)
{
    bool passed = !strcmp(examples_status_of(line), "passed");

    buf_addf(out, "<span class=\"badge %s\">", passed ? "ok" : "bad");
    html_text(out, passed ? "passed" : examples_category_of(line));
    buf_adds(out, "</span>");
}

static void examples_one_turn(struct buf *out, const struct report_stage *s, const json_t *line, int64_t turn,
                              bool titled)
{
    const char *text = examples_sample_text(s, line, turn);

    if (titled) {
        buf_addf(out, "<h4>turn %lld ", (long long)turn);
        examples_badge(out, line);
        buf_adds(out, "</h4>");
    }
    if (text)
        examples_program(out, text);
    examples_verdict_box(out, line);
}

static const json_t *examples_find_line(const struct report_stage *s, const json_t *like, int64_t turn)
{
    const json_t *v;
    size_t i;

    json_array_foreach(s->verdicts, i, v)
        if (json_i64(v, "turn", 1) == turn && json_i64(v, "sample", -1) == json_i64(like, "sample", -2) &&
            !strcmp(json_str(v, "task", ""), json_str(like, "task", "?")))
            return v;
    return NULL;
}

static void examples_card(struct buf *out, const struct report_stage *s, const json_t *line, bool open)
{
    const char *task = json_str(line, "task", "");
    int64_t turn = json_i64(line, "turn", 1);

    buf_addf(out, "<details class=card%s><summary><b>", open ? " open" : "");
    html_text(out, task);
    buf_adds(out, "</b> ");
    examples_badge(out, line);
    buf_addf(out, " <span class=dim>sample %lld", (long long)json_i64(line, "sample", 0) + 1);
    if (turn > 1)
        buf_addf(out, ", repaired in turn %lld", (long long)turn);
    buf_adds(out, "</span></summary>");
    examples_task_code(out, s, task);
    for (int64_t k = 1; k < turn; k++) {
        const json_t *earlier = examples_find_line(s, line, k);
        if (earlier)
            examples_one_turn(out, s, earlier, k, true);
    }
    examples_one_turn(out, s, line, turn, turn > 1);
    buf_adds(out, "</details>\n");
}

/* ---- choice ---- */

static bool examples_seen(json_t *set, const char *key)
{
    bool was = json_object_get(set, key) != NULL;

    json_object_set_new(set, key, json_true());
    return was;
}

enum want { PASSED, REPAIRED, FAILED };

static bool examples_fits(const json_t *line, enum want w)
{
    bool passed = !strcmp(examples_status_of(line), "passed");
    int64_t turn = json_i64(line, "turn", 1);

    switch (w) {
    case PASSED: return passed && turn == 1;
    case REPAIRED: return passed && turn > 1;
    case FAILED: return !strcmp(examples_status_of(line), "failed");
    }
    return false;
}

/* At most max cards, no two of the same family (failures: of the same category). */
static int examples_choose(struct buf *out, const struct report_stage *s, enum want w, int max, const char *heading)
{
    json_t *set = json_object();
    const json_t *line;
    size_t i;
    int n = 0;

    json_array_foreach(s->verdicts, i, line) {
        if (n == max || !examples_fits(line, w) || !examples_sample_text(s, line, json_i64(line, "turn", 1)))
            continue;
        if (examples_seen(set, w == FAILED ? examples_category_of(line) : json_str(line, "family", "")))
            continue;
        if (n == 0)
            buf_addf(out, "<h3>%s</h3>", heading);
        examples_card(out, s, line, n == 0);
        n++;
    }
    json_decref(set);
    return n;
}

void report_examples(struct buf *out, const struct report *r)
{
    const struct report_stage *s = r->n ? &r->stages[r->n - 1] : NULL;
    struct buf body;
    int n;

    if (!s || json_array_size(s->verdicts) == 0)
        return;
    buf_init(&body, BUF_MAX_TEXT);
    n = examples_choose(&body, s, PASSED, 4, "Passed");
    n += examples_choose(&body, s, REPAIRED, 2, "Repaired after the judge's feedback");
    n += examples_choose(&body, s, FAILED, 4, "Failed");
    if (n) {
        buf_adds(out, "<section><h2>Kernels</h2><p class=note>Programs of <b>");
        html_text(out, s->name);
        buf_adds(out, "</b> with MooreEval's verdict: the first of each kind, not the best.</p>");
        buf_add(out, body.p, body.n);
        buf_adds(out, "</section>\n");
    }
    buf_free(&body);
}
