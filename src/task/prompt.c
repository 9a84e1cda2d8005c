/* prompt.c - see prompt.h. Wording lives in the tables below and nowhere else. */
#include "task/prompt.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "task/repair_text.h"

static const char *const style_names[] = {"plain", "full"};

int prompt_style_parse(const char *name, enum prompt_style *ret, struct err *e)
{
    for (int i = 0; i < 2; i++)
        if (name && !strcmp(name, style_names[i])) {
            *ret = (enum prompt_style)i;
            return 0;
        }
    return err_set(e, ERR_INPUT, "unknown prompt style '%s'; use plain or full", name ? name : "");
}

const char *prompt_style_name(enum prompt_style style)
{
    return style_names[style];
}

struct backend_words {
    const char *backend, *name, *loader;
};

static const struct backend_words backends[] = {
    {"cuda", "CUDA", "torch.utils.cpp_extension.load_inline"},
    {"musa", "MUSA", "torch_musa.utils.musa_extension.load_inline"},
};

static const struct backend_words *prompt_backend_find(const char *backend)
{
    return &backends[backend && !strcmp(backend, "musa")];
}

/* Appends code in a Python fence, without what editors leave at the ends of lines and of the file: a model that never
 * saw "    " between two methods answers with wrong indentation. */
static void prompt_add_fenced(struct buf *b, const char *code)
{
    size_t blank_lines = 0;

    buf_adds(b, "```python\n");
    for (const char *p = code; *p;) {
        size_t line = strcspn(p, "\n"), n = line;

        while (n && strchr(" \t\r", p[n - 1]))
            n--;
        if (n) {
            while (blank_lines)
                buf_addc(b, '\n'), blank_lines--;
            buf_add(b, p, n);
            buf_addc(b, '\n');
        } else {
            blank_lines++;
        }
        p += line + (p[line] == '\n');
    }
    buf_adds(b, "```");
}

/* The plain request; %s is the language. */
static const char *const plain_words[PROMPT_WORDINGS] = {
    "Write ModelNew in native %s, no torch fallback.",
    "Write native %s kernels for this model as ModelNew; torch computes nothing.",
    "Port Model to hand-written %s. Call the class ModelNew, no fallback.",
    "ModelNew in %s: own kernels, no torch operators.",
    "Replace forward by a %s kernel, in a class ModelNew without fallback.",
    "Answer with ModelNew, whose forward runs in native %s.",
    "A program with ModelNew, please; its work is done by %s kernels of its own.",
    "Implement this in %s as ModelNew, with the same interface and no torch computation.",
};

/* How the full request begins; the constraints behind the code are the same for all. */
static const char *const full_words[PROMPT_WORDINGS] = {
    "You are given a PyTorch reference:",
    "Here is a PyTorch module that runs too slowly:",
    "Below is the reference implementation, in PyTorch:",
    "Rewrite the following PyTorch model with kernels of your own:",
    "This model has to run without PyTorch's operators:",
    "Consider this PyTorch code:",
    "The reference to match:",
    "Your task is to replace the computation of this module:",
};

/* Appends the prompt for a whole program. wording: which of the texts; inputs: what forward gets, or NULL. */
static void prompt_add_full(struct buf *b, int wording, const char *code, const struct backend_words *w,
                            const char *inputs)
{
    buf_addf(b, "%s\n\n", full_words[wording]);
    prompt_add_fenced(b, code);
    if (inputs && *inputs)
        buf_addf(b, "\n\nInputs of forward (others keep shape and dtype, not values):\n%s", inputs);
    buf_addf(b,
             "\n\nTarget backend: %s.\n\n"
             "Write `class ModelNew(nn.Module)` with the same constructor and forward arguments, parameters and "
             "outputs, whose computation runs in hand-written native %s kernels, built with `%s`.\n"
             "- Do not fall back: inside ModelNew.forward only allocation, views and copies of PyTorch are allowed; "
             "no torch, ATen, cuBLAS or cuDNN computation, no Triton.\n"
             "- Correctness first: shapes and dtypes must match and values agree for every input, tails and negative "
             "or large values included. Then make it fast.\n"
             "Answer with one fenced Python block that holds the complete program.",
             w->name, w->name, w->loader);
}

/* Appends words, with the language in place of their '%s'. */
static void prompt_add_plain_words(struct buf *b, const char *words, const char *language)
{
    const char *hole = strstr(words, "%s");

    buf_addf(b, "%.*s%s%s\n", (int)(hole - words), words, language, hole + 2);
}

char *prompt_task(enum prompt_style style, const char *code, const char *backend, const char *inputs)
{
    return prompt_task_worded(style, 0, code, backend, inputs);
}

char *prompt_task_worded(enum prompt_style style, int wording, const char *code, const char *backend,
                         const char *inputs)
{
    const struct backend_words *w = prompt_backend_find(backend);
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    if (style == PROMPT_PLAIN) {
        prompt_add_plain_words(&b, plain_words[wording], w->name);
        prompt_add_fenced(&b, code);
    } else {
        prompt_add_full(&b, wording, code, w, inputs);
    }
    return buf_detach(&b);
}

/* Appends "(2, 3)". */
static void prompt_add_dims(struct buf *b, const json_t *dims)
{
    size_t i, n = json_array_size(dims);

    buf_addc(b, '(');
    for (i = 0; i < n; i++)
        buf_addf(b, "%s%lld", i ? ", " : "", (long long)json_integer_value(json_array_get(dims, i)));
    buf_adds(b, n == 1 ? ",)" : ")");
}

char *prompt_inputs(const json_t *inputs)
{
    struct buf b;
    const json_t *in;
    size_t i;

    buf_init(&b, BUF_MAX_TEXT);
    json_array_foreach(inputs, i, in) {
        buf_addf(&b, "%s- input %zu: %s, shape ", i ? "\n" : "", i, json_str(in, "dtype", "float32"));
        prompt_add_dims(&b, json_object_get(in, "shape"));
        if (json_array_size(json_object_get(in, "stride"))) {
            buf_adds(&b, ", stride ");
            prompt_add_dims(&b, json_object_get(in, "stride"));
        }
    }
    return buf_detach(&b);
}

/* Length of a prefix of s of at most max bytes that ends at a line end if one is in its second half, else at a word
 * end if there is one there, else at a character boundary. */
static size_t prompt_cut_length(const char *s, size_t max)
{
    size_t n = strlen(s), i;

    if (n <= max)
        return n;
    for (i = max; i > max / 2; i--)
        if (s[i] == '\n')
            return i;
    for (i = max; i > max / 2; i--)
        if (s[i] == ' ')
            return i;
    while (max && ((unsigned char)s[max] & 0xc0) == 0x80)
        max--;
    return max;
}

/* What is asked for behind the feedback. */
static const char *const plain_end[2] = {"\nFix ModelNew.", "Fix the lines."};
static const char *const full_end[2] = {
    "\n\nFind the cause, then answer with the complete corrected program in one fenced Python block. All earlier rules "
    "hold.",
    "\nFind the cause, then answer with the lines that change, each as 'NUMBER | line' or 'line NUMBER | line', as "
    "above: one number several times puts several lines in its place, a number alone takes its line away. Or answer "
    "with the complete corrected program in one fenced Python block. All earlier rules hold."};

char *prompt_feedback(enum prompt_style style, const char *feedback, const char *shown)
{
    size_t n = style == PROMPT_PLAIN ? prompt_cut_length(feedback, PROMPT_PLAIN_FEEDBACK) : strlen(feedback);
    char *lines = shown ? mend_listing(shown) : NULL;
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    if (style == PROMPT_FULL)
        buf_adds(&b, "Your program was compiled, run and compared with the reference. The verdict:\n\n");
    buf_add(&b, feedback, n);
    if (lines)
        buf_addf(&b, "%s%s", style == PROMPT_FULL ? "\n\nThe lines of your kernel and of its class:\n" : "\n", lines);
    buf_adds(&b, (style == PROMPT_FULL ? full_end : plain_end)[lines != NULL]);
    free(lines);
    return buf_detach(&b);
}

void prompt_say(json_t *messages, const char *role, const char *content)
{
    json_t *m = json_object();

    json_object_set_new(m, "role", json_string(role));
    json_object_set_new(m, "content", json_utf8(content, strlen(content)));
    json_array_append_new(messages, m);
}

json_t *prompt_start(const char *task_prompt)
{
    json_t *messages = json_array();

    prompt_say(messages, "user", task_prompt);
    return messages;
}

void prompt_turn(json_t *messages, enum prompt_style style, const char *response, const char *feedback,
                 const char *shown)
{
    char *text = prompt_feedback(style, feedback, shown);

    prompt_say(messages, "assistant", response);
    prompt_say(messages, "user", text);
    free(text);
}
