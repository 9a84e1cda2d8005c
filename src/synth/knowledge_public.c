/* knowledge_public.c - see knowledge_public.h. A program of one layer is drawn; its kernel is cut into the frame that
 * kernels of its form share and the statements that are the layer's own. */
#include "synth/knowledge_public.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "synth/knowledge.h"
#include "synth/surface/kind.h"
#include "synth/surface/surface.h"

#define MAX_ANSWER  1200 /* bytes: the statements of the longest windows */
#define MAX_KINDS   256
#define MAX_KERNELS 4

/* A piece of a text. */
struct span {
    const char *p;
    size_t n;
};

/* One kernel: its first line, its whole text, and the lines that are the layer's own. */
struct kernel_text {
    struct span head, all, own;
};

static size_t line_length(const char *p)
{
    size_t n = strcspn(p, "\n");

    return n + (p[n] == '\n');
}

static size_t line_indent(const char *p)
{
    return strspn(p, " ");
}

/* The lines of the block that the line at p opens, up to the line that closes it. */
static struct span knowledge_block(const char *p)
{
    size_t depth = line_indent(p);
    const char *from = p + line_length(p), *end = from;

    while (*end && (*end == '\n' || line_indent(end) > depth))
        end += line_length(end);
    return (struct span){from, (size_t)(end - from)};
}

/* Where the layer's own lines are: of a map the lambda's without its return, else what stands in the guard or in the
 * loop over elements, else the whole body. */
static struct span knowledge_own_lines(struct span body)
{
    static const char *const openers[] = {"    auto each = ", "    if (i < ", "    for (int i = blockIdx"};
    static const char last[] = "        return v;\n";

    for (size_t k = 0; k < sizeof openers / sizeof *openers; k++)
        for (const char *p = body.p; p < body.p + body.n; p += line_length(p))
            if (!strncmp(p, openers[k], strlen(openers[k])) && p[line_length(p) - 2] == '{') {
                struct span own = knowledge_block(p);
                if (k == 0 && own.n >= strlen(last))
                    own.n -= strlen(last);
                return own;
            }
    return body;
}

/* Fills out with the kernels of a program, in order; how many. */
static int knowledge_find_kernels(const char *program, struct kernel_text out[MAX_KERNELS])
{
    int n = 0;

    for (const char *p = program; n < MAX_KERNELS && (p = strstr(p, "__global__ void ")); n++) {
        struct span body = knowledge_block(p);
        out[n] = (struct kernel_text){.head = {p, line_length(p)}, .own = knowledge_own_lines(body)};
        out[n].all = (struct span){p, (size_t)(body.p + body.n - p) + line_length(body.p + body.n)};
        p = body.p;
    }
    return n;
}

/* Lines without the blanks that all of them start with. */
static void knowledge_add_lines(struct span s, struct buf *out)
{
    size_t off = s.n;

    for (const char *p = s.p; p < s.p + s.n; p += line_length(p))
        if (*p != '\n' && line_indent(p) < off)
            off = line_indent(p);
    for (const char *p = s.p; p < s.p + s.n; p += line_length(p)) {
        size_t skip = *p == '\n' ? 0 : off;
        buf_add(out, p + skip, line_length(p) - skip);
    }
}

/* The class of the reference, without sizes and inputs. */
static struct span knowledge_class_of(const char *task)
{
    const char *p = strstr(task, "class Model");
    struct span s = p ? knowledge_block(p) : (struct span){task, strlen(task)};

    if (!p)
        return s;
    s.n += (size_t)(s.p - p), s.p = p;
    while (s.n > 1 && s.p[s.n - 1] == '\n' && s.p[s.n - 2] == '\n')
        s.n--;
    return s;
}

/* ---- forms: each adds to the question what its answer needs ---- */

static const char *knowledge_fence(const struct problem_source *s)
{
    return s->o->prompt_format.musa ? "musa" : "cuda";
}

/* Appends the answer: the kernel's own statements in a fence. Nothing is added to the question. */
static void knowledge_own_statements(const struct problem_source *s, const struct kernel_text *k, struct buf *ask,
                                     struct buf *answer)
{
    (void)ask;
    buf_addf(answer, "```%s\n", knowledge_fence(s));
    knowledge_add_lines(k->own, answer);
    buf_adds(answer, "```");
}

/* Asks for a kernel's own lines with the rest of it around them. */
static void knowledge_in_frame(const struct problem_source *s, const struct kernel_text *k, struct buf *ask,
                               struct buf *answer)
{
    const char *behind = k->own.p + k->own.n;

    buf_addf(ask, "\n```%s\n", knowledge_fence(s));
    buf_add(ask, k->all.p, (size_t)(k->own.p - k->all.p));
    buf_addf(ask, "%*s// ...\n", (int)line_indent(k->own.p), "");
    buf_add(ask, behind, (size_t)(k->all.p + k->all.n - behind));
    buf_adds(ask, "```");
    knowledge_own_statements(s, k, ask, answer);
}

/* Answers with the line that declares the kernel. */
static void knowledge_declaration(const struct problem_source *s, const struct kernel_text *k, struct buf *ask,
                                  struct buf *answer)
{
    (void)ask;
    buf_addf(answer, "```%s\n", knowledge_fence(s));
    buf_add(answer, k->head.p, k->head.n);
    buf_adds(answer, "```");
}

static const struct {
    const char *before, *behind; /* the language's name stands between */
    void (*say)(const struct problem_source *s, const struct kernel_text *k, struct buf *ask, struct buf *answer);
    int weight;
} forms[] = {
    {"Which statements of a ", " kernel are this module's own?", knowledge_own_statements, 3},
    {"Write the inner statements of a ", " kernel for this module.", knowledge_own_statements, 2},
    {"Fill in the ", " kernel of this module.", knowledge_in_frame, 3},
    {"How is the ", " kernel of this module declared?", knowledge_declaration, 2},
};

#define N_FORMS_ASKED (sizeof forms / sizeof *forms)

/* The index of a form of question, by weights. */
static size_t knowledge_draw_form(struct rng *r)
{
    int total = 0, at;
    size_t f = 0;

    for (size_t i = 0; i < N_FORMS_ASKED; i++)
        total += forms[i].weight;
    for (at = (int)rng_below(r, (uint64_t)total); at >= forms[f].weight; f++)
        at -= forms[f].weight;
    return f;
}

/* A kind that training may ask about: of two draws one is a known operator, where there are such. */
static const char *knowledge_draw_kind(const struct problem_source *s, struct rng *r)
{
    const char *of[N_OP_CLASSES][MAX_KINDS], *name;
    int n[N_OP_CLASSES] = {0};
    enum op_class c;

    for (int i = 0; (name = surface_kind(i)) && i < MAX_KINDS; i++) {
        c = heldout_name_class(kind_operator(name));
        if (c == OP_KNOWN && s->o->all_taught)
            c = OP_TAUGHT;
        if (surface_stands_alone(name))
            of[c][n[c]++] = name;
    }
    c = n[OP_KNOWN] && rng_below(r, 2) ? OP_KNOWN : OP_TAUGHT;
    return of[c][rng_below(r, (uint64_t)n[c])];
}

static json_t *knowledge_public_json(const struct problem_source *s, const struct surface *f, const struct buf *ask,
                                     const struct buf *answer, int index)
{
    char hash[17];
    json_t *task;

    snprintf(hash, sizeof hash, "%016" PRIx64, surface_hash(f));
    task = json_pack("{s:[s], s:[s], s:s}", "ops", f->op[0], "families", f->family[0], "graph_hash", hash);
    return knowledge_json(s, index, hash, task, "surface", ask, answer);
}

/* NULL where the answer would be too long, or the question was asked before. */
static json_t *knowledge_ask_about(const struct problem_source *s, const struct surface *f, struct rng *r, int index)
{
    struct kernel_text kernel[MAX_KERNELS];
    struct span class = knowledge_class_of(f->task);
    int n = knowledge_find_kernels(f->program, kernel);
    size_t form = knowledge_draw_form(r);
    struct buf ask, answer;
    json_t *v = NULL;

    if (!n)
        return NULL;
    buf_init(&ask, BUF_MAX_TEXT), buf_init(&answer, BUF_MAX_TEXT);
    buf_addf(&ask, "%s%s%s\n```python\n%.*s```", forms[form].before, s->o->prompt_format.musa ? "MUSA" : "CUDA",
             forms[form].behind, (int)class.n, class.p);
    forms[form].say(s, &kernel[rng_below(r, (uint64_t)n)], &ask, &answer);
    if (answer.n < MAX_ANSWER && graph_set_add(s->asked, hash64(ask.p, ask.n, 1)))
        v = knowledge_public_json(s, f, &ask, &answer, index);
    buf_free(&ask), buf_free(&answer);
    return v;
}

json_t *knowledge_public_record(const struct problem_source *s, int index)
{
    json_t *v = NULL;
    struct rng r;

    rng_seed(&r, s->o->seed, (uint64_t)98 << 48 | (uint64_t)index);
    for (int tries = 0; tries < 200 && !v; tries++) {
        const struct surface_limits l = {.only = knowledge_draw_kind(s, &r)};
        struct surface f;

        surface_draw(rng_u64(&r), (uint64_t)index, &l, &f);
        f.program = record_in_dialect(&s->o->prompt_format, f.program);
        if (f.program)
            v = knowledge_ask_about(s, &f, &r, index);
        surface_free(&f);
    }
    return v;
}
