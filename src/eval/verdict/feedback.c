/* feedback.c - see feedback.h. One function per category, picked from a table. */
#include "eval/verdict/feedback.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "eval/verdict/record.h"

static const json_t *feedback_reason(const json_t *v)
{
    const json_t *r = record_reason(v);

    return r ? r : json_null();
}

/* "123", "nan", "1.5e-05": a number of the record, which may be one of the strings for non-finite values. */
static void feedback_add_num(struct buf *b, const json_t *v)
{
    double x = json_num_value(v);

    if (json_is_string(v))
        buf_adds(b, json_string_value(v));
    else if (fabs(x) < 1e15 && x == floor(x))
        buf_addf(b, "%.0f", x);
    else
        buf_addf(b, "%.6g", x);
}

/* Appends the text's first lines, cut at whole characters. */
static void feedback_add_lines(struct buf *b, const char *text, int max_lines, size_t max_bytes)
{
    for (int i = 0; i < max_lines && *text && max_bytes > 3; i++) {
        size_t n = strcspn(text, "\n"), k = n < max_bytes ? n : max_bytes;

        while (k && k < n && ((unsigned char)text[k] & 0xc0) == 0x80)
            k--;
        buf_add(b, text, k);
        buf_addc(b, '\n');
        max_bytes -= k;
        text += n + (text[n] == '\n');
    }
}

static void feedback_at_line(struct buf *b, const json_t *r)
{
    if (json_i64(r, "line", 0) > 0)
        buf_addf(b, "At line %lld of your program: %.160s\n", (long long)json_i64(r, "line", 0),
                 json_str(r, "text", ""));
}

/* Appends why there is no program to run. */
static void feedback_say_extraction(const json_t *v, struct buf *b)
{
    bool file = !strcmp(json_str(json_object_get(v, "extraction"), "how", ""), "file");

    buf_addf(b, "No program to run: %s.\n%s class ModelNew(nn.Module).\n", json_str(feedback_reason(v), "message", ""),
             file ? "The file must define" : "Answer with one ```python fence that defines");
}

/* Appends a compiler's message with its place and up to five lines of source. */
static void feedback_say_diagnostic(const json_t *d, struct buf *b)
{
    const json_t *row;
    size_t i;
    long long bad = json_i64(d, "line", 0);

    buf_addf(b, "%s", json_str(d, "file", "source"));
    if (bad > 0)
        buf_addf(b, ":%lld", bad);
    if (json_i64(d, "column", 0) > 0)
        buf_addf(b, ":%lld", (long long)json_i64(d, "column", 0));
    buf_addf(b, ": %.400s\n", json_str(d, "message", ""));
    json_array_foreach(json_object_get(d, "source"), i, row) {
        if (i < 5)
            buf_addf(b, "%s %lld | %.140s\n", json_i64(row, "line", 0) == bad ? ">" : " ",
                     (long long)json_i64(row, "line", 0), json_str(row, "text", ""));
    }
}

/* Appends why the program does not compile: Python's syntax, the first diagnostic, or the tools' words. */
static void feedback_say_compile(const json_t *v, struct buf *b)
{
    const json_t *c = json_object_get(v, "compile"), *list = json_object_get(c, "diagnostics"), *r = feedback_reason(v);

    buf_adds(b, "Compilation failed.\n");
    if (!strcmp(json_str(r, "stage", ""), "load")) { /* Python syntax */
        buf_addf(b, "%s\n", json_str(r, "message", ""));
        feedback_at_line(b, r);
    } else if (json_array_size(list)) {
        feedback_say_diagnostic(json_array_get(list, 0), b);
        if (json_array_size(list) > 1)
            buf_addf(b, "(and %zu more; they may follow from this one)\n", json_array_size(list) - 1);
    } else {
        feedback_add_lines(b, json_str(r, "message", ""), 12, 900);
    }
}

#define VIOLATIONS 6 /* that are named */

/* Appends one broken rule of legality with its line and what to do. */
static void feedback_say_violation(const json_t *x, struct buf *b)
{
    const char *rule = json_str(x, "rule", ""), *op = json_str(x, "op", "?");
    long long line = json_i64(x, "line", 0);

    if (!strcmp(rule, "forbidden_op"))
        buf_addf(b, "forward runs %s through PyTorch (%lld call%s)", op, (long long)json_i64(x, "count", 0),
                 buf_plural(json_i64(x, "count", 0)));
    else if (!strcmp(rule, "forbidden_init_op"))
        buf_addf(b, "%s is computed by PyTorch at import or in __init__", op);
    else if (!strcmp(rule, "forbidden_symbol"))
        buf_addf(b, "the C++ code refers to %s, which no kernel needs", op);
    else
        buf_addf(b, "%s", json_str(x, "message", rule));
    if (line > 0)
        buf_addf(b, ", line %lld", line);
    if (line > 0 && *json_str(x, "text", ""))
        buf_addf(b, ": %.140s", json_str(x, "text", ""));
    buf_addc(b, '\n');
    if (*json_str(x, "handling", "") && !strstr(b->p, json_str(x, "handling", "")))
        buf_addf(b, "It runs because of an exception that your program caught: %.240s\n", json_str(x, "handling", ""));
}

/* What to do about a broken rule; never NULL. */
static const char *feedback_remedy(const char *rule)
{
    if (!strcmp(rule, "host_computes"))
        return "What the host gives to kernels may depend on shapes and weights; let kernels compute what depends on "
               "the input's values.";
    if (!strcmp(rule, "side_stream"))
        return "Launch on the current stream, or make it wait for yours (cudaEventRecord, cudaStreamWaitEvent).";
    return "Move this work into the kernel; PyTorch may only allocate, view and copy.";
}

/* Appends the first broken rules. */
static void feedback_say_violations(const json_t *list, struct buf *b)
{
    const json_t *x;
    size_t i;

    json_array_foreach(list, i, x)
        if (i < VIOLATIONS)
            feedback_say_violation(x, b);
    if (json_array_size(list) > VIOLATIONS)
        buf_addf(b, "(and %zu more)\n", json_array_size(list) - VIOLATIONS);
}

/* Draws that tell no right answer from a wrong one, which are no trials. */
static void feedback_say_undecided(const json_t *regimes, struct buf *b)
{
    const char *name;
    json_t *one;
    long long n = 0;
    struct buf names;

    buf_init(&names, 400);
    json_object_foreach((json_t *)regimes, name, one)
        if (json_i64(one, "undecided", 0) > 0) {
            buf_addf(&names, "%s%s", n ? ", " : "", name);
            n += json_i64(one, "undecided", 0);
        }
    if (n)
        buf_addf(b, "%lld more draw%s (%s) decided nothing; 'musacoder lint' says why.\n", n, buf_plural(n), names.p);
    buf_free(&names);
}

/* Where torch's operators may stay, what is not the program's own work stands beside the verdict. */
static void feedback_say_passed(const json_t *v, struct buf *b)
{
    const json_t *legality = json_object_get(v, "legality"), *c = json_object_get(v, "correctness");
    bool own = json_flag(legality, "ok", true);

    buf_addf(b, "Passed%s: %lld of %lld trials match%s\n",
             own ? "" : !strcmp(json_str(v, "protocol", ""), "kernelbench") ? " under the published rules" :
             " with torch's operators",
             (long long)json_i64(c, "passed", 0), (long long)json_i64(c, "trials", 0),
             own ? ", all arithmetic in your own kernels." : ". Protocol strict would not allow it:");
    if (!own)
        feedback_say_violations(json_object_get(legality, "violations"), b);
    feedback_say_undecided(json_object_get(c, "regimes"), b);
}

/* Appends what is not allowed in the program. */
static void feedback_say_cheating(const json_t *v, struct buf *b)
{
    const json_t *list = json_object_get(json_object_get(v, "legality"), "violations");

    buf_adds(b, "Not allowed: all arithmetic must be done by your own CUDA kernels.\n");
    feedback_say_violations(list, b);
    if (json_array_size(list) == 0)
        buf_addf(b, "%s.\n", json_str(feedback_reason(v), "message", ""));
    buf_addf(b, "%s\n", feedback_remedy(json_str(json_array_get(list, 0), "rule", "")));
}

/* x: a reason, or 'worst'. */
static void feedback_say_variant(const json_t *x, struct buf *b)
{
    const char *is = json_str(x, "variant_is", "");

    if (*json_str(x, "variant", ""))
        buf_addf(b, "This is variant '%s' of the task%s%s%s; what came before it was right.\n",
                 json_str(x, "variant", ""),
                 *is ? " (" : "", is, *is ? ")" : "");
}

/* Appends where a finding happened: line, kernel, block and thread, as far as known. */
static void feedback_say_finding(const json_t *f, struct buf *b)
{
    static const char *const keys[] = {"kernel", "block", "thread", NULL};

    if (json_i64(f, "line", 0) > 0)
        buf_addf(b, "At %s:%lld%s%.140s\n", json_str(f, "file", "your CUDA source"), (long long)json_i64(f, "line", 0),
                 *json_str(f, "text", "") ? ": " : "", json_str(f, "text", ""));
    for (int i = 0; keys[i]; i++) {
        json_t *x = json_object_get(f, keys[i]);
        char *text = json_is_string(x) ? NULL : x ? json_dumps(x, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;

        if (x && !json_is_null(x))
            buf_addf(b, "%s %s ", keys[i], text ? text : json_string_value(x));
        free(text);
    }
    if (b->n && b->p[b->n - 1] == ' ')
        b->p[b->n - 1] = '\n';
}

/* Appends what was running when the time limit passed, with advice. */
static void feedback_say_timeout(const json_t *v, struct buf *b)
{
    const json_t *f = json_object_get(feedback_reason(v), "finding");

    buf_addf(b, "Time limit: %s.\n", json_str(feedback_reason(v), "message", ""));
    feedback_at_line(b, feedback_reason(v));
    if (f) {
        buf_addf(b, "%s.\n", json_str(f, "message", ""));
        feedback_say_finding(f, b);
    }
    if (json_i64(json_object_get(v, "correctness"), "passed", 0) > 0)
        buf_adds(b, "Trials before this one ended and were right: it is slow, or a loop ends on some inputs only.\n");
    else
        buf_adds(b, "Look for a loop that does not end, a __syncthreads() that not all threads reach, or far too much "
                    "work per thread.\n");
    feedback_say_variant(feedback_reason(v), b);
}

/* Beside the first: what, and where. */
static void feedback_say_more(const json_t *r, struct buf *b)
{
    const json_t *f;
    size_t i;

    json_array_foreach(json_object_get(r, "more"), i, f) {
        buf_addf(b, "Also: %.240s\n", json_str(f, "message", ""));
        if (json_i64(f, "line", 0) > 0)
            buf_addf(b, "At %s:%lld%s%.140s\n", json_str(f, "file", "?"), (long long)json_i64(f, "line", 0),
                     *json_str(f, "text", "") ? ": " : "", json_str(f, "text", ""));
    }
}

/* The judge's own call of ModelNew had other arguments: no line of the program is on the way. */
static bool feedback_other_arguments(const json_t *r)
{
    const char *m = json_str(r, "message", "");

    return !strncmp(m, "TypeError: ", 11) && json_i64(r, "line", 0) < 1 &&
           (strstr(m, "forward() ") || strstr(m, "__init__() ")) &&
           (strstr(m, "positional argument") || strstr(m, "unexpected keyword argument"));
}

/* Appends the error of a program that failed while it was loaded or ran. */
static void feedback_say_runtime(const json_t *v, struct buf *b)
{
    const json_t *r = feedback_reason(v), *f = json_object_get(r, "finding");

    buf_adds(b, "Runtime error");
    buf_adds(b, !strcmp(json_str(r, "stage", ""), "load") ? " while the program was imported and constructed.\n"
                                                         : " in forward.\n");
    feedback_add_lines(b, json_str(r, "message", ""), 8, 800);
    if (f)
        feedback_say_finding(f, b);
    feedback_at_line(b, r);
    feedback_say_more(r, b);
    if (feedback_other_arguments(r))
        buf_addf(b, "ModelNew gets the arguments of Model in task '%.100s': is the program for another task?\n",
                 json_str(v, "task", ""));
    feedback_say_variant(r, b);
}

#define NEAR 1e-3 /* relative: a miss that six digits hardly show */

/* True for values that differ little more than a tolerance allows. */
static bool is_near(double expected, double got)
{
    return isfinite(expected) && isfinite(got) && fabs(got - expected) <= NEAR * fabs(expected);
}

/* Appends one element: its index, what was expected, what came, and by how much it is off. */
static void feedback_say_spot(const char *word, const json_t *s, const json_t *tolerance, struct buf *b)
{
    double expected = json_num_at(s, "expected"), got = json_num_at(s, "got");

    if (!json_is_object(s))
        return;
    buf_addf(b, "%s %s: expected ", word, *json_str(s, "index", "") ? json_str(s, "index", "") : "value");
    if (is_near(expected, got)) {
        buf_addf(b, "%.9g, got %.9g", expected, got);
    } else {
        feedback_add_num(b, json_object_get(s, "expected"));
        buf_adds(b, ", got ");
        feedback_add_num(b, json_object_get(s, "got"));
    }
    if (isfinite(expected) && isfinite(got) && json_is_object(tolerance))
        buf_addf(b, " (off by %.3g, allowed %.3g)", fabs(got - expected),
                 json_f64(tolerance, "abs", 0) + json_f64(tolerance, "rel", 0) * fabs(expected));
    buf_addc(b, '\n');
}

/* What the draws of a regime have that random ones do not. */
static void say_regime(const char *regime, struct buf *b)
{
    static const char *const rows[][2] = {
        {"task", "those are the task's own, of get_inputs"},
        {"edges", "those hold rows of zeros, constant rows or equal values, or masks and indices of other places"},
        {"influence", "there few elements stand out from a background, arguments that get_inputs makes constant "
                      "vary, or parameters have both signs and other sizes"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(regime, rows[i][0]))
            buf_addf(b, "About %s inputs: %s.\n", regime, rows[i][1]);
}

/* Of nan among the wrong elements: were they written? "unwritten" is not there where nobody looked. */
static void feedback_say_nan(const json_t *w, const char *pattern, struct buf *b)
{
    long long nan = json_i64(w, "nan", 0), unwritten = json_i64(w, "unwritten", -1);

    if (nan > 0 && unwritten == 0)
        buf_addf(b, "%lld of the wrong elements are nan that a kernel computed: inf - inf, inf / inf or 0 / 0; does an "
                    "exp, a square or a sum overflow?\n", nan);
    else if (nan > 0 && !strstr(pattern, "never written"))
        buf_addf(b, "%lld of the wrong elements are nan: memory that was never written reads as nan.\n", nan);
}

/* Appends how an output's values are wrong: share, pattern, first and worst place. */
static void feedback_say_values(const json_t *w, struct buf *b)
{
    const char *pattern = json_str(w, "pattern", "");
    double share = json_num_at(w, "share") * 100;
    double matched = json_f64(json_object_get(w, "tolerance"), "matched", 0);

    buf_addf(b, "Output%s%s is wrong on %s inputs: %lld of %lld elements (%.3g %%)%s%s.\n",
             *json_str(w, "output", "") ? " " : "", json_str(w, "output", ""), json_str(w, "regime", ""),
             (long long)json_i64(w, "wrong", 1), (long long)json_i64(w, "elements", 1), share,
             *pattern ? ": " : "", pattern);
    if (matched > 0 && matched < 1)
        buf_addf(b, "The task's tolerance wants %.6g %% of the elements right.\n", matched * 100);
    say_regime(json_str(w, "regime", ""), b);
    feedback_say_spot("First wrong at", json_object_get(w, "first"), json_object_get(w, "tolerance"), b);
    if (strcmp(json_str(json_object_get(w, "first"), "index", ""), json_str(json_object_get(w, "worst"), "index", "")))
        feedback_say_spot("Largest error at", json_object_get(w, "worst"), json_object_get(w, "tolerance"), b);
    if (json_f64(w, "typical_abs_err", 0) > 0 && json_i64(w, "wrong", 0) > 2)
        buf_addf(b, "Half of the wrong elements are off by %.3g or less.\n", json_f64(w, "typical_abs_err", 0));
    if (*json_str(w, "hypothesis", ""))
        buf_addf(b, "What would explain it: %.200s\n", json_str(w, "hypothesis", ""));
    feedback_say_nan(w, pattern, b);
}

/* Views that the program has given to its own functions, where an answer is wrong. */
static void feedback_say_strides(const json_t *v, struct buf *b)
{
    const json_t *n;
    size_t i;

    json_array_foreach(json_object_get(json_object_get(v, "legality"), "notes"), i, n)
        if (!strcmp(json_str(n, "kind", ""), "strides")) {
            buf_addf(b, "%.80s is a view with %.160s: a kernel that reads it as dense memory is wrong; use its "
                        "strides, or .contiguous().\n", json_str(n, "name", ""), json_str(n, "message", ""));
            return;
        }
}

/* Of what went wrong behind calls that were right. */
static void feedback_say_later(const json_t *w, struct buf *b)
{
    long long later = json_i64(w, "later_calls", 0), earlier = json_i64(w, "earlier_calls", 0);

    if (!strcmp(json_str(w, "kind", ""), "overwritten"))
        return;
    if (later > 0)
        buf_addf(b, "Each trial was right by itself; call %lld after them was not: what the program keeps on the "
                    "device changes from call to call.\n", later);
    if (earlier > 0 && json_is_true(json_object_get(w, "other_instance")))
        buf_adds(b, "Each trial was right by itself; it is wrong where another ModelNew with other weights has been "
                    "called before in the same process: keep what depends on the weights in the instance.\n");
    else if (earlier > 0)
        buf_addf(b, "Each trial was right by itself; behind %lld calls of forward it is wrong: what the program keeps "
                    "changes from call to call.\n", earlier);
}

/* Appends how many trials pass and what is wrong with the worst one. */
static void feedback_say_correctness(const json_t *v, struct buf *b)
{
    const json_t *c = json_object_get(v, "correctness"), *w = json_object_get(c, "worst");

    if (!json_is_object(w) && json_i64(c, "passed", 0) > 0 && json_i64(c, "passed", 0) == json_i64(c, "trials", 0))
        buf_addf(b, "The values of all %lld trials are right, but:\n", (long long)json_i64(c, "trials", 0));
    else if (json_i64(w, "earlier_calls", 0) > 0)
        buf_addf(b, "Wrong result in a later call, after %lld trials that passed.\n",
                 (long long)json_i64(c, "trials", 0));
    else if (strcmp(json_str(feedback_reason(v), "stage", ""), "performance"))
        buf_addf(b, "Wrong result: %lld of %lld trials pass.\n", (long long)json_i64(c, "passed", 0),
                 (long long)json_i64(c, "trials", 0));
    else
        buf_addf(b, "Wrong result in a timed call, after %lld trials that passed: is something kept from an earlier "
                    "call, or is "
                    "there a race?\n", (long long)json_i64(c, "passed", 0));
    feedback_say_variant(w, b);
    if (!strcmp(json_str(w, "kind", ""), "values"))
        feedback_say_values(w, b);
    else if (!json_is_object(w)) /* no output is at fault */
        buf_addf(b, "%s.\n", json_str(feedback_reason(v), "message", ""));
    else
        buf_addf(b, "Output%s%s: %s.\n", *json_str(w, "output", "") ? " " : "", json_str(w, "output", ""),
                 json_str(w, "detail", ""));
    feedback_say_later(w, b);
    if (json_is_true(json_object_get(w, "order_of_blocks")))
        buf_adds(b, "It is right where blocks run in the order of their numbers, and wrong in another order, which a "
                    "device may choose: a block must wait for those that it relies on, or a second launch come behind "
                    "them.\n");
    feedback_say_strides(v, b);
    if (json_is_object(json_object_get(v, "unwritten"))) {
        buf_addf(b, "A kernel reads memory without a value: %.200s.\n",
                 json_str(json_object_get(v, "unwritten"), "message", ""));
        feedback_say_finding(json_object_get(v, "unwritten"), b);
    }
}

static void feedback_say_infra(const json_t *v, struct buf *b)
{
    buf_addf(b, "Not judged: %s\n", json_str(feedback_reason(v), "message", ""));
}

static void feedback_say_unsupported(const json_t *v, struct buf *b)
{
    buf_addf(b, "Not judged, and not scored; this judge cannot do it: %s.\n",
             json_str(feedback_reason(v), "message", ""));
}

static const struct {
    const char *category;
    void (*say)(const json_t *v, struct buf *b);
} table[] = {
    {"extraction_error", feedback_say_extraction}, {"compile_error", feedback_say_compile},
    {"cheating", feedback_say_cheating},
    {"timeout", feedback_say_timeout}, {"runtime_error", feedback_say_runtime},
    {"correctness_error", feedback_say_correctness},
    {"infra", feedback_say_infra},
    {"unsupported", feedback_say_unsupported},
};

/* Compilers quote with typographic marks; ASCII is shorter, and one token for any tokenizer. */
static void feedback_plain_quotes(struct buf *b)
{
    size_t k = 0;

    for (size_t i = 0; i < b->n; i++) {
        bool mark = i + 2 < b->n && !memcmp(b->p + i, "\xe2\x80", 2) && ((unsigned char)b->p[i + 2] & 0xfe) == 0x98;

        b->p[k++] = mark ? '\'' : b->p[i];
        i += mark ? 2 : 0;
    }
    b->n = k;
    b->p[k] = 0;
}

/* ---- speed ---- */

/* Appends a number of three digits. */
static void feedback_add_short(struct buf *b, double x)
{
    char text[32];

    snprintf(text, sizeof text, "%.3g", x);
    buf_adds(b, text);
}

/* "1.31x of eager (95 % CI 1.27-1.34)" */
static void feedback_say_speedup(const json_t *perf, const char *baseline, const char *name, struct buf *b)
{
    const json_t *ci;
    char key[64];

    snprintf(key, sizeof key, "speedup_%s", baseline);
    feedback_add_short(b, json_num_at(perf, key));
    buf_addf(b, "x of %s", name);
    snprintf(key, sizeof key, "speedup_%s_ci", baseline);
    ci = json_object_get(perf, key);
    if (json_array_size(ci) == 2)
        buf_addf(b, " (95 %% CI %.2f-%.2f)", json_num_value(json_array_get(ci, 0)),
                 json_num_value(json_array_get(ci, 1)));
}

/* Appends how near the program is to the device's limits. */
static void feedback_say_roofline(const json_t *perf, struct buf *b)
{
    bool memory = !strcmp(json_str(perf, "bound", ""), "memory");
    double peak = json_num_value(json_object_get(perf, memory ? "bandwidth_peak" : "flops_peak")),
           share = json_num_at(perf, "roofline_share");

    if (!isfinite(share) || !isfinite(peak))
        return;
    buf_addf(b, "; %.0f %% of the roofline: %s-bound, ", share * 100, memory ? "memory" : "compute");
    feedback_add_short(b, share * peak / 1e12);
    buf_adds(b, " of ");
    feedback_add_short(b, peak / 1e12);
    buf_adds(b, memory ? " TB/s" : " TFLOP/s");
}

/* What one call of a vendor's library needs for the same. */
static void feedback_say_library(const json_t *perf, struct buf *b)
{
    double share = json_num_at(perf, "library_share");

    if (!json_is_number(json_object_get(perf, "library_ms")))
        return;
    buf_addf(b, "; the library's %.60s takes ", json_str(perf, "library_call", "call"));
    feedback_add_short(b, json_num_at(perf, "library_ms"));
    buf_adds(b, " ms");
    if (isfinite(share))
        buf_addf(b, ", %.0f %% of the roofline", share * 100);
}

/* Appends why a measured time is not accepted. why: a reason's name of the record. */
static void feedback_say_distrust(const json_t *perf, const char *why, struct buf *b)
{
    const json_t *clocks = json_object_get(perf, "clocks");

    if (!strcmp(why, "clock_disagree"))
        buf_addf(b, " The device events and the judge's clock differ by %.3g ms a call (margin %.3g ms): do all work "
                    "on the "
                    "current stream, inside forward.", fmax(fabs(json_num_at(clocks, "gap_ms")),
                 json_num_at(clocks, "fast_gap_ms")),
                 json_num_at(clocks, "margin_ms"));
    else if (!strcmp(why, "below_roofline"))
        buf_addf(b, " No program can read the inputs and write the outputs in less than %.3g ms.",
                 json_num_at(perf, "floor_ms"));
    else if (!strcmp(why, "output_wrong"))
        buf_adds(b, " Outputs of timed calls are wrong or not the ones that were there when the call ended.");
    else
        buf_addf(b, " %s.", !strcmp(why, "throttled") ? "The device throttled" : !strcmp(why, "device_busy") ?
                 "Someone else used the device" : "The task's inputs could not be made fresh for every call");
}

/* Appends time and speedups, or why there are none. */
static void feedback_say_speed(const json_t *perf, struct buf *b)
{
    const json_t *why;
    size_t i;

    buf_adds(b, "Speed: ");
    if (!json_is_number(json_object_get(perf, "candidate_ms"))) {
        buf_addf(b, "not measured (%.300s).", json_str(perf, "error", "?"));
        return;
    }
    feedback_add_short(b, json_num_at(perf, "candidate_ms"));
    buf_adds(b, " ms");
    if (!json_flag(perf, "trusted", false)) {
        buf_adds(b, ", not accepted.");
        json_array_foreach(json_object_get(perf, "reasons"), i, why)
            feedback_say_distrust(perf, json_string_value(why) ? json_string_value(why) : "", b);
        return;
    }
    buf_adds(b, ", ");
    feedback_say_speedup(perf, "eager", "eager", b);
    if (json_is_number(json_object_get(perf, "speedup_compile"))) {
        buf_adds(b, ", ");
        feedback_say_speedup(perf, "compile", "torch.compile", b);
    }
    feedback_say_roofline(perf, b);
    feedback_say_library(perf, b);
    buf_addc(b, '.');
    if (json_is_string(json_object_get(perf, "compile_error")))
        buf_addf(b, " torch.compile fails on this task (%.80s).", json_str(perf, "compile_error", ""));
}

/* What a program raises, prints or is called may steer terminals: no such byte gets into a dialogue or onto a
 * screen. */
static void feedback_show(struct buf *out)
{
    struct buf clean;

    buf_init(&clean, out->max);
    utf8_show(&clean, out->p, out->n);
    buf_clear(out);
    buf_add(out, clean.p, clean.n);
    buf_free(&clean);
}

/* Of many shapes that passed: how many, and which ones cannot be judged. */
static void feedback_say_workloads(const json_t *rows, struct buf *out)
{
    size_t n = json_array_size(rows), refused = 0, i;
    const json_t *row;

    json_array_foreach(rows, i, row)
        refused += json_object_get(row, "refused") != NULL;
    if (refused)
        buf_addf(out, "%zu of %zu workloads passed, the others cannot be judged.\n", n - refused, n);
    else
        buf_addf(out, "All %zu workloads passed.\n", n);
    json_array_foreach(rows, i, row)
        if (json_object_get(row, "refused"))
            buf_addf(out, "Workload '%s' cannot be judged: %.300s\n", json_str(row, "name", ""),
                     json_str(row, "refused", ""));
}

/* Of many shapes: which one it was, or how many there are. */
static void feedback_say_workload(const json_t *verdict, struct buf *out)
{
    const json_t *one = json_object_get(verdict, "workload");
    size_t n = json_array_size(json_object_get(verdict, "workloads"));
    const char *is = json_str(one, "is", "");

    if (one)
        buf_addf(out, "Workload '%s'%s%s%s, one of %zu.\n", json_str(one, "name", ""), *is ? " (" : "", is,
                 *is ? ")" : "", n);
    else if (n && !strcmp(json_str(verdict, "status", ""), "passed"))
        feedback_say_workloads(json_object_get(verdict, "workloads"), out);
}

/* Files of the answer that are not there, as their names are refused. */
static void feedback_say_left_out(const json_t *extraction, struct buf *out)
{
    const json_t *why;
    size_t i;

    json_array_foreach(json_object_get(extraction, "left_out"), i, why)
        buf_addf(out, "%sA file of the answer is left out: %.200s.\n", out->n && out->p[out->n - 1] != '\n' ? "\n" : "",
                 json_string_value(why));
}

/* Appends the judge's words about a verdict, as the model reads them in its next turn. */
void feedback_text(const json_t *verdict, struct buf *out)
{
    const char *category = json_str(verdict, "category", "");

    feedback_say_workload(verdict, out);
    if (!strcmp(json_str(verdict, "status", ""), "passed"))
        feedback_say_passed(verdict, out);
    if (!strcmp(json_str(verdict, "status", ""), "passed") && json_is_object(json_object_get(verdict, "performance")))
        feedback_say_speed(json_object_get(verdict, "performance"), out);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].category, category))
            table[i].say(verdict, out);
    if (strcmp(json_str(verdict, "status", ""), "passed"))
        feedback_say_left_out(json_object_get(verdict, "extraction"), out);
    while (out->n && out->p[out->n - 1] == '\n')
        out->p[--out->n] = 0;
    feedback_plain_quotes(out);
    feedback_show(out);
}

/* Appends time and speedup for a verdict's one line. */
static void feedback_line_speed(const json_t *perf, struct buf *out)
{
    if (!json_is_number(json_object_get(perf, "candidate_ms"))) {
        buf_adds(out, "not timed");
        return;
    }
    feedback_add_short(out, json_num_at(perf, "candidate_ms"));
    buf_adds(out, " ms");
    if (json_flag(perf, "trusted", false)) {
        buf_adds(out, ", ");
        feedback_say_speedup(perf, "eager", "eager", out);
    } else {
        buf_addf(out, " not accepted (%s)", json_string_value(json_array_get(json_object_get(perf, "reasons"), 0)));
    }
}

/* Appends a verdict's reason in one line, or how many trials match. */
static void feedback_line_of(const json_t *verdict, struct buf *out)
{
    const json_t *w = json_object_get(json_object_get(verdict, "correctness"), "worst"), *r = record_reason(verdict);
    const char *pattern = json_str(w, "pattern", "");

    if (!r) {
        buf_addf(out, "%lld of %lld trials match",
                 (long long)json_i64(json_object_get(verdict, "correctness"), "passed", 0),
                 (long long)json_i64(json_object_get(verdict, "correctness"), "trials", 0));
        if (json_is_object(json_object_get(verdict, "performance"))) {
            buf_adds(out, ", ");
            feedback_line_speed(json_object_get(verdict, "performance"), out);
        }
        return;
    }
    feedback_add_lines(out, json_str(r, "message", ""), 1, 200);
    if (out->n && out->p[out->n - 1] == '\n')
        out->p[--out->n] = 0;
    if (!strcmp(json_str(r, "stage", ""), "load") && json_i64(r, "line", 0) > 0)
        buf_addf(out, " (line %lld: %.100s)", (long long)json_i64(r, "line", 0), json_str(r, "text", ""));
    if (json_object_get(verdict, "workload"))
        buf_addf(out, " on workload '%s'", json_str(json_object_get(verdict, "workload"), "name", ""));
    if (*json_str(w, "variant", json_str(r, "variant", "")))
        buf_addf(out, " on variant '%s'", json_str(w, "variant", json_str(r, "variant", "")));
    if (!strcmp(json_str(r, "category", ""), "correctness_error") && *pattern)
        buf_addf(out, " (%s)", pattern);
    else if (!strcmp(json_str(r, "category", ""), "correctness_error") && *json_str(w, "detail", ""))
        buf_addf(out, " (%s)", json_str(w, "detail", ""));
}

void feedback_line(const json_t *verdict, struct buf *out)
{
    feedback_line_of(verdict, out);
    feedback_show(out);
}
