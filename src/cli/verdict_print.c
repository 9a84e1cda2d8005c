/* verdict_print.c - see verdict_print.h. One row of functions a format. */
#include "cli/verdict_print.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/cli.h"
#include "eval/verdict/codes.h"
#include "eval/verdict/feedback.h"
#include "eval/verdict/record.h"
#include "task/bundle.h"

#define FILE_NAME 1024

struct verdict_format {
    const char *name;
    void (*add)(struct verdict_report *r, const json_t *v);
    void (*end)(struct verdict_report *r);
};

static void verdict_show(struct buf *out, const char *text)
{
    utf8_show(out, text, strlen(text));
}

static const struct code *verdict_code(const json_t *v)
{
    const struct code *c = code_find(json_str(v, "code", "-"));

    return c ? c : code_of(v);
}

/* The file of the user's that the place is in: the candidate, or one of its files. The file's name alone where an
 * archive or a response holds it. False: no such file can be opened. */
static bool verdict_file(const json_t *v, char *ret, size_t n)
{
    const char *candidate = json_str(v, "candidate", "?"), *file = json_str(json_object_get(v, "place"), "file", NULL);
    char *path = file ? bundle_place(candidate, file) : NULL;
    bool own = !file || path;

    snprintf(ret, n, "%s", path ? path : file ? file : candidate);
    free(path);
    return own;
}

/* The file and the line that an annotation names; 0: no line. */
static long long verdict_annotated(const json_t *v, char *ret, size_t n)
{
    if (verdict_file(v, ret, n))
        return json_i64(json_object_get(v, "place"), "line", 0);
    snprintf(ret, n, "%s", json_str(v, "candidate", "?"));
    return 0;
}

/* ---- lines of the user's file in place of the compiler's ---- */

struct own_lines {
    char file[FILE_NAME]; /* verdict_file */
    const char *source;   /* what the compiler calls the string: "cuda_source"; NULL */
    long long shift;      /* from a line of the source to one of the file */
    long long before;     /* lines of the file before the program */
};

/* How lines of the judged text map to the user's own file. */
static struct own_lines verdict_own_lines(const json_t *v)
{
    const json_t *place = json_object_get(v, "place"), *reason = record_reason(v);
    struct own_lines l = {.source = json_str(place, "source", NULL)};

    verdict_file(v, l.file, sizeof l.file);
    if (l.source)
        l.shift = json_i64(place, "line", 0) - json_i64(place, "source_line", 0);
    else if (json_is_object(place) && json_i64(reason, "line", 0) > 0)
        l.before = json_i64(place, "line", 0) - json_i64(reason, "line", 0);
    return l;
}

/* "cuda_source:14" -> "file.py:18". Returns the bytes that were taken, 0: none. */
static size_t verdict_take_source(const char *p, const struct own_lines *l, struct buf *out)
{
    size_t n = l->source ? strlen(l->source) : 0;
    char *end;
    long long line;

    if (!n || strncmp(p, l->source, n) || p[n] != ':' || !isdigit((unsigned char)p[n + 1]))
        return 0;
    line = strtoll(p + n + 1, &end, 10);
    verdict_show(out, l->file);
    buf_addf(out, ":%lld", line + l->shift);
    return (size_t)(end - p);
}

/* "line 12", of the source or of the program, behind a blank. */
static size_t verdict_take_line(const char *p, bool program, const struct own_lines *l, struct buf *out)
{
    char *end;
    long long line;

    if (strncmp(p, "line ", 5) || !isdigit((unsigned char)p[5]))
        return 0;
    line = strtoll(p + 5, &end, 10);
    buf_addf(out, "line %lld", line + (program || !l->source ? l->before : l->shift));
    return (size_t)(end - p);
}

/* "> 10 | code": the margin of quoted source. */
static size_t verdict_take_margin(const char *p, const struct own_lines *l, struct buf *out)
{
    const char *digits = p + strspn(p, "> ");
    char *end;
    long long line = strtoll(digits, &end, 10);

    if (!l->source || digits - p != 2 || end == digits || strncmp(end, " | ", 3))
        return 0;
    buf_addf(out, "%.2s%lld", p, line + l->shift);
    return (size_t)(end - p);
}

/* Appends a line of the judge's words with places of the user's own file. */
static void verdict_own_line(const char *p, size_t n, const struct own_lines *l, struct buf *out)
{
    const char *end = p + n, *from = p;
    bool program = memmem(p, n, "of your program", 15) || memmem(p, n, "forward runs ", 13);
    size_t took = verdict_take_margin(p, l, out);

    for (p += took; p < end; p += took ? took : 1) {
        bool starts = p == from || !isalnum((unsigned char)p[-1]);

        took = starts ? verdict_take_source(p, l, out) : 0;
        if (!took && starts)
            took = verdict_take_line(p, program, l, out);
        if (!took)
            buf_addc(out, *p);
    }
}

/* The first line of the feedback says the category, as the head does. */
static bool verdict_is_heading(const char *line)
{
    static const char *const heads[] = {"Compilation failed.", "Runtime error in forward.", "Runtime error while",
                                        "Not judged, and not scored", "Wrong result: 0 of 0"};

    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (!strncmp(line, heads[i], strlen(heads[i])) && strchr(line, '\n'))
            return true;
    return false;
}

/* The judge's words with lines of the user's own file in place of the compiler's. Pure. */
static void verdict_words(const json_t *verdict, struct buf *out)
{
    const char *p = json_str(verdict, "feedback", "");
    struct own_lines l = verdict_own_lines(verdict);

    if (verdict_is_heading(p))
        p += strcspn(p, "\n") + 1;
    for (size_t n; *p; p += n + (p[n] == '\n')) {
        n = strcspn(p, "\n");
        verdict_own_line(p, n, &l, out);
        buf_addc(out, '\n');
    }
}

/* ---- text ---- */

/* Appends text; in colour with the terminal's code 'how', as "1;31". */
static void verdict_paint(struct buf *out, bool colour, const char *how, const char *text)
{
    if (colour)
        buf_addf(out, "\033[%sm%s\033[0m", how, text);
    else
        buf_adds(out, text);
}

/* Appends PASS, FAIL, .. in its colour. */
static void verdict_status(const json_t *v, bool colour, struct buf *out)
{
    static const char *const rows[][3] = {{"passed", "32", "PASS"}, {"failed", "1;31", "FAIL"},
                                          {"unsupported", "33", "SKIP"}, {"infra", "35", "ERROR"}};
    const char *status = json_str(v, "status", "");

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(status, rows[i][0]))
            verdict_paint(out, colour, rows[i][1], rows[i][2]);
}

/* Appends the file and line of the failure; the candidate's name first where the file is not its own. */
static void verdict_where(const json_t *v, struct buf *out)
{
    long long line = json_i64(json_object_get(v, "place"), "line", 0);
    char file[FILE_NAME];
    bool own = verdict_file(v, file, sizeof file);

    if (!own) {
        verdict_show(out, json_str(v, "candidate", "?"));
        buf_adds(out, " (");
    }
    verdict_show(out, file);
    if (line > 0)
        buf_addf(out, ":%lld", line);
    buf_adds(out, own ? "" : ")");
}

/* Appends the verdict's title: what is wrong, in which kernel. */
static void verdict_title(const json_t *v, struct buf *out)
{
    const json_t *finding = json_object_get(record_reason(v), "finding");
    const char *kernel = json_str(finding, "kernel", json_str(json_object_get(v, "place"), "kernel", NULL));

    buf_adds(out, verdict_code(v)->title);
    if (kernel) {
        buf_adds(out, " in kernel ");
        verdict_show(out, kernel);
    }
}

/* feedback_line cleans the whole of its buffer, colours too. */
static void verdict_line_of(const json_t *v, struct buf *out)
{
    struct buf line;

    buf_init(&line, BUF_MAX_TEXT);
    feedback_line(v, &line);
    buf_adds(out, line.p);
    buf_free(&line);
}

/* The head of a verdict: "FAIL file.py:18 data race in kernel k [MC304]". Asks whether the candidate is a folder: then
 * it is "FAIL folder/file.cu:18 ..". */
static void verdict_head(const json_t *verdict, bool colour, struct buf *out)
{
    bool passed = !strcmp(json_str(verdict, "status", ""), "passed");

    verdict_status(verdict, colour, out);
    buf_addc(out, ' ');
    verdict_where(verdict, out);
    buf_addc(out, ' ');
    if (passed)
        verdict_line_of(verdict, out);
    else
        verdict_title(verdict, out);
    if (json_is_number(json_object_get(verdict, "reward")) && !passed)
        buf_addf(out, ", reward %.3g", json_f64(verdict, "reward", 0));
    else if (passed)
        buf_addf(out, ", reward %.4g", json_f64(verdict, "reward", 0));
    if (!passed) {
        buf_addc(out, ' ');
        buf_addf(out, colour ? "\033[2m[%s]\033[0m" : "[%s]", verdict_code(verdict)->id);
    }
}

/* Appends text with 'with' in front of each of its lines. */
static void verdict_indent(const char *text, const char *with, struct buf *out)
{
    while (*text) {
        size_t n = strcspn(text, "\n");

        buf_adds(out, with);
        buf_add(out, text, n);
        buf_addc(out, '\n');
        text += n + (text[n] == '\n');
    }
}

/* Appends each stage's time in ms. */
static void verdict_stages(const json_t *v, struct buf *out)
{
    const char *stage;
    json_t *ms;

    buf_adds(out, " ");
    json_object_foreach(json_object_get(v, "stage_ms"), stage, ms)
        if (strcmp(stage, "reward") && strcmp(stage, "feedback") && json_num_value(ms) >= 0.05)
            buf_addf(out, " %s %.0f ms", stage, json_num_value(ms));
    buf_adds(out, json_flag(v, "cached", false) ? " (cached)\n" : "\n");
}

#define PRINTED_LINES 8 /* of what a program printed, unless all is asked for */

/* What the program and its kernels printed. */
static void verdict_printed(const json_t *v, bool whole, struct buf *out)
{
    const char *text = json_str(v, "printed", ""), *end = text;
    struct buf clean;

    for (int i = 0; *end && (whole || i < PRINTED_LINES); i++)
        end += strcspn(end, "\n") + (end[strcspn(end, "\n")] == '\n');
    if (!*text)
        return;
    buf_init(&clean, BUF_MAX_TEXT);
    utf8_show(&clean, text, (size_t)(end - text));
    buf_adds(out, "  it printed:\n");
    verdict_indent(clean.p, "  | ", out);
    buf_adds(out, *end ? "  | ... (-v shows more)\n" : "");
    buf_free(&clean);
}

/* Of a timeout: what the limit counts, and what it does not. */
static void verdict_counted(const json_t *v, struct buf *out)
{
    const json_t *ms = json_object_get(v, "stage_ms");

    if (!strcmp(json_str(v, "category", ""), "timeout"))
        buf_addf(out, "  --timeout counts the program's own run time; compiling (%.1f s), waiting (%.1f s) and the "
                 "reference (%.1f s) are not in it\n", json_f64(ms, "compile", 0) / 1e3,
                 json_f64(ms, "waiting", 0) / 1e3, json_f64(ms, "reference", 0) / 1e3);
}

#define PUBLISHED 1e-4 /* protocol kernelbench: its absolute tolerance */

/* Of values that the published protocol would let pass, whatever they are: so much is known of all draws. */
static void verdict_published(const json_t *v, struct buf *out)
{
    const json_t *c = json_object_get(v, "correctness"), *w = json_object_get(c, "worst");
    double most = json_num_at(c, "max_abs_err");

    if (strcmp(json_str(v, "category", ""), "correctness_error") || strcmp(json_str(w, "kind", ""), "values") ||
        json_i64(w, "nan", 0) || strcmp(json_str(v, "protocol", ""), "strict") || !(most <= PUBLISHED))
        return;
    buf_addf(out, "  no element of any draw is off by more than %.2g; --protocol kernelbench allows 1e-4 and more\n",
             most);
}

/* Appends what the code means and how to mend it. */
static void verdict_explained(const json_t *v, struct buf *out)
{
    const struct code *c = verdict_code(v);
    const json_t *replay = json_object_get(v, "replay");

    buf_addf(out, "  %s: %s\n  %s\n", c->id, c->why, c->fix);
    if (json_is_object(replay))
        buf_addf(out, "  facts: %lld launch%s of %lld kernel%s in the recorded run, %lld bytes brought along, %lld "
                 "bytes read back\n", (long long)json_i64(replay, "launches", 0),
                 json_i64(replay, "launches", 0) == 1 ? "" : "es", (long long)json_i64(replay, "kernels", 0),
                 buf_plural(json_i64(replay, "kernels", 0)), (long long)json_i64(replay, "bytes_up", 0),
                 (long long)json_i64(replay, "bytes_down", 0));
    if (!strcmp(c->category, "cheating"))
        buf_adds(out, "  not so? 'eval --json' has the facts (legality, replay); --protocol kernelbench applies the "
                      "published rules instead; docs/threat-model.md says what each rule holds on to\n");
    if (!strcmp(c->category, "correctness_error"))
        buf_adds(out, "  not so? 'eval --repro FOLDER' writes the inputs and a script that shows the difference with "
                      "PyTorch alone; docs/sidecar.md says how a task states its own tolerance\n");
}

/* Appends a verdict for people. So do the next ones in their formats. */
static void verdict_add_text(struct verdict_report *r, const json_t *v)
{
    bool passed = !strcmp(json_str(v, "status", ""), "passed");
    struct buf words;

    if (r->detail == VERDICT_QUIET && passed)
        return;
    verdict_head(v, r->colour, &r->out);
    buf_addc(&r->out, '\n');
    if (r->detail == VERDICT_QUIET)
        return;
    buf_init(&words, BUF_MAX_TEXT);
    if (!passed || r->detail == VERDICT_VERBOSE || json_flag(json_object_get(v, "legality"), "ok", true) == false)
        verdict_words(v, &words);
    verdict_indent(words.p, "  ", &r->out);
    buf_free(&words);
    verdict_published(v, &r->out);
    verdict_counted(v, &r->out);
    verdict_printed(v, r->detail == VERDICT_VERBOSE, &r->out);
    if (r->explain && !passed)
        verdict_explained(v, &r->out);
    if (r->detail == VERDICT_VERBOSE)
        verdict_stages(v, &r->out);
}

/* Appends the sum of several verdicts. */
static void verdict_end_text(struct verdict_report *r)
{
    if (r->n < 2)
        return;
    buf_addf(&r->out, "%d passed, %d failed", r->passed, r->failed);
    if (r->unjudged)
        buf_addf(&r->out, ", %d not judged", r->unjudged);
    buf_addc(&r->out, '\n');
}

/* ---- json ---- */

/* Appends the record as one line. */
static void verdict_add_json(struct verdict_report *r, const json_t *v)
{
    json_line(&r->out, v);
}

static void verdict_end_nothing(struct verdict_report *r)
{
    (void)r;
}

/* ---- GitHub's workflow commands ---- */

/* Of a property (file, title) or of the message: what would end it is written in per cent. */
static void verdict_escape(const char *text, const char *of, struct buf *out)
{
    for (; *text; text++)
        if (strchr(of, *text))
            buf_addf(out, "%%%02X", (unsigned char)*text);
        else
            buf_addc(out, *text);
}

/* Appends the judge's words without a line end. */
static void verdict_message(const json_t *v, struct buf *out)
{
    struct buf words;

    buf_init(&words, BUF_MAX_TEXT);
    verdict_words(v, &words);
    while (words.n && words.p[words.n - 1] == '\n')
        words.p[--words.n] = 0;
    buf_adds(out, words.p);
    buf_free(&words);
}

/* Appends a verdict as a GitHub annotation; passed ones give none. */
static void verdict_add_github(struct verdict_report *r, const json_t *v)
{
    const char *status = json_str(v, "status", "");
    char file[FILE_NAME];
    long long line = verdict_annotated(v, file, sizeof file);
    struct buf text;

    if (!strcmp(status, "passed"))
        return;
    buf_init(&text, BUF_MAX_TEXT);
    buf_addf(&r->out, "::%s file=", strcmp(status, "failed") ? "warning" : "error");
    verdict_escape(file, "%\r\n:,", &r->out);
    if (line > 0)
        buf_addf(&r->out, ",line=%lld", line);
    verdict_title(v, &text);
    buf_addf(&r->out, ",title=%s ", verdict_code(v)->id);
    verdict_escape(text.p, "%\r\n:,", &r->out);
    buf_adds(&r->out, "::");
    buf_clear(&text);
    verdict_message(v, &text);
    verdict_escape(text.p, "%\r\n", &r->out);
    buf_addc(&r->out, '\n');
    buf_free(&text);
}

/* ---- SARIF ---- */

/* Appends a verdict as a SARIF result; passed ones give none. */
static void verdict_add_sarif(struct verdict_report *r, const json_t *v)
{
    const char *status = json_str(v, "status", "");
    char file[FILE_NAME];
    long long line = verdict_annotated(v, file, sizeof file);
    json_t *place, *result;
    struct buf text;

    if (!strcmp(status, "passed"))
        return;
    buf_init(&text, BUF_MAX_TEXT);
    verdict_title(v, &text);
    buf_addc(&text, '\n');
    verdict_message(v, &text);
    place = json_pack("{s:{s:{s:o}}}", "physicalLocation", "artifactLocation", "uri", json_utf8(file, strlen(file)));
    if (line > 0)
        json_object_set_new(json_object_get(place, "physicalLocation"), "region",
                            json_pack("{s:I}", "startLine", (json_int_t)line));
    result = json_pack("{s:s,s:s,s:{s:o},s:[o]}", "ruleId", verdict_code(v)->id, "level",
                       strcmp(status, "failed") ? "warning" : "error", "message", "text", json_utf8(text.p, text.n),
                       "locations", place);
    json_array_append_new(r->sarif, result);
    buf_free(&text);
}

/* SARIF's rules: all codes that can fail. New. */
static json_t *verdict_sarif_rules(void)
{
    json_t *rules = json_array();

    for (const struct code *c = code_table; c->id; c++)
        if (strcmp(c->category, "passed") && strcmp(c->category, "error"))
            json_array_append_new(rules, json_pack("{s:s,s:s,s:{s:s},s:{s:s},s:{s:s}}", "id", c->id, "name",
                                                   c->category, "shortDescription", "text", c->title,
                                                   "fullDescription", "text", c->why, "help", "text", c->fix));
    return rules;
}

/* Appends the SARIF document of all records. */
static void verdict_end_sarif(struct verdict_report *r)
{
    json_t *doc = json_pack("{s:s,s:s,s:[{s:{s:{s:s,s:s,s:o}},s:O}]}", "$schema",
                            "https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0", "runs", "tool",
                            "driver", "name", "musacoder", "version", MC_VERSION, "rules", verdict_sarif_rules(),
                            "results", r->sarif);

    json_line(&r->out, doc);
    json_decref(doc);
}

/* ---- the report ---- */

static const struct verdict_format verdict_formats[] = {
    {"text", verdict_add_text, verdict_end_text},
    {"json", verdict_add_json, verdict_end_nothing},
    {"github", verdict_add_github, verdict_end_text},
    {"sarif", verdict_add_sarif, verdict_end_sarif},
};

/* True where output is to be coloured. to: the file, NULL for a terminal. */
static bool verdict_coloured(const char *colour, const char *to)
{
    const char *no = getenv("NO_COLOR");

    if (strcmp(colour, "auto"))
        return !strcmp(colour, "always");
    return !to && !(no && *no) && isatty(1);
}

void verdict_report_open(struct verdict_report *r, const char *format, const char *colour, const char *to)
{
    *r = (struct verdict_report){.format = verdict_formats, .detail = VERDICT_PLAIN, .to = to,
                                 .colour = verdict_coloured(colour, to), .sarif = json_array()};
    for (size_t i = 0; i < sizeof verdict_formats / sizeof *verdict_formats; i++)
        if (!strcmp(verdict_formats[i].name, format))
            r->format = &verdict_formats[i];
    buf_init(&r->out, BUF_MAX_TEXT * 4);
}

/* Prints what there is, unless a file is written at the end. */
static int verdict_flush(struct verdict_report *r, struct err *e)
{
    if (r->to)
        return 0;
    fwrite(r->out.p, 1, r->out.n, stdout);
    buf_clear(&r->out);
    return fflush(stdout) != 0 || ferror(stdout) ? err_sys(e, "cannot write to standard output") : 0;
}

int verdict_report_add(struct verdict_report *r, const json_t *verdict, struct err *e)
{
    const char *status = json_str(verdict, "status", "");

    r->n++;
    r->passed += !strcmp(status, "passed");
    r->failed += !strcmp(status, "failed");
    r->infra += !strcmp(status, "infra");
    r->unjudged = r->n - r->passed - r->failed;
    r->format->add(r, verdict);
    return verdict_flush(r, e);
}

int verdict_report_end(struct verdict_report *r, struct err *e)
{
    r->format->end(r);
    return r->to ? file_write(r->to, r->out.p, r->out.n, e) : verdict_flush(r, e);
}

void verdict_report_free(struct verdict_report *r)
{
    buf_free(&r->out);
    json_decref(r->sarif);
}
