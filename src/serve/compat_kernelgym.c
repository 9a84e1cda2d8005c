/* compat_kernelgym.c - see compat_kernelgym.h. One row for each category of verdict. */
#include "serve/compat_kernelgym.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "queue/queue.h"

#define ID_MAX 100
#define CODE_MIN 10
#define CODE_MAX (1 << 20)
#define TIMEOUT_DEFAULT_S 300

static const struct kernelgym_row {
    const char *category, *status, *code, *says; /* says: what the message begins with */
    bool compiled, correct, decoy;
} rows[] = {
    {"passed", "completed", NULL, NULL, true, true, false},
    {"extraction_error", "failed", "VALIDATION_ERROR", "", false, false, false},
    {"compile_error", "failed", "COMPILATION_ERROR", "Kernel compilation failed: ", false, false, false},
    {"runtime_error", "completed", "RUNTIME_ERROR", "", true, false, false},
    {"correctness_error", "completed", "CORRECTNESS_ERROR", "", true, false, false},
    {"cheating", "completed", NULL, "", true, false, true},
    {"timeout", "timeout", "TIMEOUT_ERROR", "", true, false, false},
    {NULL, "failed", "SYSTEM_ERROR", "", false, false, false}, /* unsupported, infra, and jobs without a verdict */
};

static const char *kernelgym_category_of(const json_t *v)
{
    const char *status = json_str(v, "status", "infra");

    return json_str(v, "category", status);
}

/* The table's row of a job's state and verdict; the last one for all others. */
static const struct kernelgym_row *kernelgym_row_of(int state, const json_t *v)
{
    const struct kernelgym_row *r = rows;

    while (r->category && (state != QUEUE_DONE || !v || strcmp(r->category, kernelgym_category_of(v))))
        r++;
    return r;
}

bool kg_unscored(int state, const json_t *v)
{
    return state == QUEUE_FAILED || (state == QUEUE_DONE && !kernelgym_row_of(state, v)->category);
}

/* ---- requests ---- */

/* The text between a section's fences, owned; NULL: it has no such section. */
static char *kernelgym_section(const char *text, const char *name)
{
    char *head = xasprintf("### %s", name);
    const char *at = strstr(text, head), *open = at ? strstr(at, "```") : NULL;
    const char *line = open ? strchr(open, '\n') : NULL, *close = line ? strstr(line, "\n```") : NULL;

    free(head);
    return close ? xstrndup(line + 1, (size_t)(close - line)) : NULL;
}

/* A Python string literal. */
static void kernelgym_add_quoted(struct buf *b, const char *s)
{
    buf_addc(b, '\'');
    for (; *s; s++) {
        if (*s == '\n')
            buf_adds(b, "\\n'\n    '");
        else if (*s == '\\' || *s == '\'')
            buf_addf(b, "\\%c", *s);
        else if (*s == '\r')
            buf_adds(b, "\\r");
        else
            buf_addc(b, *s);
    }
    buf_addc(b, '\'');
}

/* A program of three sections as one Python file, owned; NULL: the text has no such sections. */
static char *kg_sections(const char *text)
{
    char *cuda = kernelgym_section(text, "CUDA_KERNELS"), *bind = kernelgym_section(text, "APPLY_BINDINGS");
    char *model = kernelgym_section(text, "MODEL_NEW");
    struct buf b;
    char *ret = NULL;

    if (cuda && bind && model) {
        buf_init(&b, BUF_MAX_TEXT);
        buf_adds(&b, "from torch.utils.cpp_extension import load_inline\nimport sys\ncuda_extension = load_inline(\n"
                     "    name='cuda_extension', cpp_sources=(");
        kernelgym_add_quoted(&b, bind);
        buf_adds(&b, "),\n    cuda_sources=(");
        kernelgym_add_quoted(&b, cuda);
        buf_adds(&b, "))\nsys.modules['cuda_extension'] = cuda_extension\n");
        buf_adds(&b, model);
        ret = buf_detach(&b);
    }
    free(cuda);
    free(bind);
    free(model);
    return ret;
}

/* The body's text of min to max bytes; NULL with ERR_INPUT. */
static const char *kernelgym_text_field(const json_t *body, const char *name, size_t min, size_t max, struct err *e)
{
    const json_t *v = json_object_get(body, name);
    size_t n = json_string_length(v);

    if (json_is_string(v) && n >= min && n <= max)
        return json_string_value(v);
    err_set(e, ERR_INPUT, "%s: a text of %zu to %zu characters is needed", name, min, max);
    return NULL;
}

static int kernelgym_priority_of(const json_t *body)
{
    const char *p = json_str(body, "priority", "normal");

    return !strcmp(p, "high") ? 1 : !strcmp(p, "low") ? -1 : 0;
}

/* The length of device="cuda", device='cuda' or device="cuda:0" at p, or 0. */
static size_t kernelgym_names_cuda(const char *p)
{
    char quote = strncmp(p, "device=", 7) ? 0 : p[7];
    const char *end = quote == '"' || quote == '\'' ? p + 8 : NULL;

    if (!end || strncmp(end, "cuda", 4))
        return 0;
    end += 4;
    if (end[0] == ':' && end[1] == '0')
        end += 2;
    return *end == quote ? (size_t)(end + 1 - p) : 0;
}

char *kg_reference_on_host(const char *code)
{
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    while (*code) {
        size_t n = kernelgym_names_cuda(code);
        if (n)
            buf_adds(&b, "device=\"cpu\"");
        else
            buf_addc(&b, *code);
        code += n ? n : 1;
    }
    return buf_detach(&b);
}

int kg_request_read(const json_t *body, struct kg_request *ret, struct err *e)
{
    const char *code;
    struct kg_request r = {.priority = kernelgym_priority_of(body),
                           .force_refresh = json_flag(body, "force_refresh", false)};

    r.timeout_s = json_f64(body, "timeout", TIMEOUT_DEFAULT_S);
    if (!(r.task_id = kernelgym_text_field(body, "task_id", 1, ID_MAX, e)) ||
        !(r.reference = kernelgym_text_field(body, "reference_code", CODE_MIN, CODE_MAX, e)) ||
        !(code = kernelgym_text_field(body, "kernel_code", CODE_MIN, CODE_MAX, e)))
        return -1;
    if (!(r.timeout_s >= 10 && r.timeout_s <= 3600))
        return err_set(e, ERR_INPUT, "timeout: 10 to 3600 seconds");
    if (strcmp(json_str(body, "entry_point", "Model"), "Model"))
        return err_set(e, ERR_INPUT, "entry_point: only 'Model' is judged; rename the class");
    r.program = kg_sections(code);
    if (!r.program)
        r.program = xstrdup(code);
    *ret = r;
    return 0;
}

void kg_request_free(struct kg_request *r)
{
    free(r->program);
    r->program = NULL;
}

/* ---- results ---- */

/* A number of the verdict's performance, or the fallback. */
static double kernelgym_perf_number(const json_t *v, const char *name, double fallback)
{
    const json_t *perf = json_object_get(v, "performance");
    double x = json_num_at(perf, name);

    return json_flag(perf, "trusted", false) && isfinite(x) ? x : fallback;
}

/* The message of a job's state in KernelGym's words. New. */
static json_t *kernelgym_message_of(int state, const struct kernelgym_row *r, const json_t *v, const char *failure)
{
    const char *why = failure ? failure : json_str(v, "feedback", json_str(v, "status", ""));
    char *text;
    json_t *ret;

    if (!r->says)
        return json_null();
    if (state == QUEUE_CANCELLED)
        return json_string("Task cancelled");
    text = xasprintf("%s%s", r->says, why);
    ret = json_utf8(text, strlen(text));
    free(text);
    return ret;
}

/* The "metadata" of a verdict in KernelGym's keys. New. */
static json_t *kernelgym_metadata_of(const struct kernelgym_row *r, const json_t *v)
{
    static const char *const keys[][2] = {{"compile_error", "compilation_error"},
                                          {"runtime_error", "runtime_error"},
                                          {"correctness_error", "correctness_issue"}};
    json_t *m = json_pack("{s:s,s:s}", "device", json_str(v, "backend", ""), "verdict",
                          v ? kernelgym_category_of(v) : "infra");

    for (size_t i = 0; r->category && i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(keys[i][0], r->category))
            json_object_set_new(m, keys[i][1], json_string(json_str(v, "feedback", "")));
    if (r->correct) { /* a program that passed has done all of its work in kernels of its own */
        json_object_set_new(m, "num_custom_kernels", json_integer(1));
        json_object_set_new(m, "num_total_kernels", json_integer(1));
    }
    return m;
}

/* KernelGYM's word for a job's state. */
static const char *kernelgym_status_of(int state, const struct kernelgym_row *r)
{
    static const char *const open[] = {"pending", "processing"};

    return state < QUEUE_DONE ? open[state] : state == QUEUE_CANCELLED ? "cancelled" : r->status;
}

json_t *kg_result(const char *task_id, int state, const json_t *v, const char *failure)
{
    const struct kernelgym_row *r = kernelgym_row_of(state, v);
    bool ended = state >= QUEUE_DONE;
    bool correct = r->correct || (r->decoy && json_f64(json_object_get(v, "correctness"), "q", 0) >= 1);
    json_t *m = json_pack("{s:s,s:s,s:b,s:b,s:b}", "task_id", task_id, "status", kernelgym_status_of(state, r),
                          "compiled",
                          ended && r->compiled, "correctness", ended && correct, "decoy_kernel", ended && r->decoy);

    json_object_set_new(m, "reference_runtime", json_real(kernelgym_perf_number(v, "eager_ms", -1)));
    json_object_set_new(m, "kernel_runtime", json_real(kernelgym_perf_number(v, "candidate_ms", -1)));
    json_object_set_new(m, "speedup", json_real(kernelgym_perf_number(v, "speedup_eager", 0)));
    json_object_set_new(m, "metadata", ended ? kernelgym_metadata_of(r, v) : json_object());
    json_object_set_new(m, "error_message", ended ? kernelgym_message_of(state, r, v, failure) : json_null());
    json_object_set_new(m, "error_code", ended && r->code ? json_string(r->code) : json_null());
    return m;
}

json_t *kg_status(const char *task_id, int state, const json_t *v, const char *failure)
{
    const struct kernelgym_row *r = kernelgym_row_of(state, v);

    return json_pack("{s:s,s:s,s:f,s:n,s:n,s:n,s:o}", "task_id", task_id, "status", kernelgym_status_of(state, r),
                     "progress", state >= QUEUE_DONE ? 1.0 : state == QUEUE_LEASED ? 0.5 : 0.0, "estimated_completion",
                     "queue_position", "assigned_device", "error_message",
                     state >= QUEUE_DONE ? kernelgym_message_of(state, r, v, failure) : json_null());
}
