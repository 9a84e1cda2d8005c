/* knowledge.c - see knowledge.h. Reading order: knowledge_record at the end; a graph is drawn, and asked about in one
 * of the forms of the table. */
#include "synth/knowledge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "synth/program.h"
#include "synth/wording.h"

#define MAX_ANSWER 500     /* bytes: an answer is shorter than a program */
#define BROADCAST_ONE_IN 4 /* of maps with a broadcast operand: what they teach is mostly about shapes */

/* A graph that one kernel computes, and that kernel; its answer so far. */
struct knowledge_question {
    const struct problem_source *s;
    const struct dag *g;
    struct kernels *k;
    struct afun *f; /* the program; 'kernel' is in it */
    struct afun *kernel;
    struct arena a;
    struct buf ask, answer;
};

/* The question says all that the answer needs: no number stands in a module alone. */
static bool knowledge_is_said(const struct dag *g)
{
    for (int n = 0; n < g->n_nodes; n++) {
        const char *init = g->node[n].c.op->spell[g->node[n].spelling].init;
        if (init && (strchr(init, '$') || g->node[n].c.op->n_params))
            return false;
    }
    return true;
}

/* Of a map over all elements alike no shape is needed; what reads by index may look like one where an axis is 1. */
static bool knowledge_needs_shapes(const struct knowledge_question *q)
{
    const struct nest *k = &q->k->k[0].nest;

    for (int n = 0; n < q->g->n_nodes; n++)
        if (!q->g->node[n].c.op->expr)
            return true;
    return k->class != NEST_MAP || k->n_dims != 1;
}

/* ---- what is asked about ---- */

/* The lines of forward() between "def forward" and its end. */
static void knowledge_add_torch(const struct knowledge_question *q, struct buf *out)
{
    struct program_style style = {0};
    struct buf task;
    const char *p;

    buf_init(&task, BUF_MAX_TEXT);
    program_task(q->g, &style, &task);
    for (p = strstr(task.p, "def forward"); p && (p = strchr(p, '\n')) && !strncmp(p + 1, "        ", 8);) {
        p++;
        buf_addf(out, "%.*s\n", (int)(strcspn(p, "\n") - 8), p + 8);
    }
    buf_free(&task);
}

/* Appends a sentence with the shapes of the graph's inputs. */
static void knowledge_add_shapes(const struct dag *g, struct buf *out)
{
    bool first = true;

    for (int i = 0; i < g->n_values; i++)
        if (g->value[i].kind == VALUE_INPUT) {
            const struct tdesc *t = &g->value[i].t;
            buf_adds(out, first ? "\nShapes: (" : ", (");
            for (int d = 0; d < t->rank; d++)
                buf_addf(out, "%s%d", d ? ", " : "", t->d[d]);
            buf_adds(out, t->rank == 1 ? ",)" : ")");
            first = false;
        }
}

static const char *knowledge_language(const struct knowledge_question *q, bool fence)
{
    return q->s->o->prompt_format.musa ? (fence ? "musa" : "MUSA") : fence ? "cuda" : "CUDA";
}

/* ---- answers ---- */

static void knowledge_add_fenced(const struct knowledge_question *q, const char *text, struct buf *out)
{
    buf_addf(out, "```%s\n%s```", knowledge_language(q, true), text);
}

/* The statement of the kernel that tests its bounds; NULL: none. */
static struct as *knowledge_guard_of(const struct knowledge_question *q)
{
    struct as *x = q->kernel->body;

    while (x && !(x->role && !strcmp(x->role, "guard")))
        x = x->next;
    return x;
}

/* Where the list starts that makes one output: behind the kernel's own guard, or in it. NULL: there is no guard. */
static struct as **knowledge_element_of(const struct knowledge_question *q)
{
    struct as *x = knowledge_guard_of(q);

    return !x ? NULL : x->body && x->body->kind == AS_RETURN ? &x->next : &x->body;
}

/* Appends what the kernel does for one element; false if it has no such part. */
static bool knowledge_add_statements(const struct knowledge_question *q, struct buf *out)
{
    static const struct ast_style plain;
    struct as **x = knowledge_element_of(q);

    for (const struct as *p = x ? *x : NULL; p; p = p->next)
        as_print(p, 0, &plain, out);
    return out->n > 0;
}

/* The answer is what the kernel does for one element, in a fence; false: it has no such part. */
static bool knowledge_answer_statements(struct knowledge_question *q)
{
    struct buf b;
    bool good;

    buf_init(&b, BUF_MAX_TEXT);
    good = knowledge_add_statements(q, &b);
    if (good)
        knowledge_add_fenced(q, b.p, &q->answer);
    buf_free(&b);
    return good;
}

/* The kernel without its statements goes into the question. */
static bool knowledge_answer_frame(struct knowledge_question *q)
{
    static const struct ast_style plain;
    struct as **x = knowledge_element_of(q), *all = x ? *x : NULL, gap = {.kind = AS_COMMENT, .s = "..."};
    struct afun alone = *q->kernel;
    struct buf b;

    if (!knowledge_answer_statements(q))
        return false;
    buf_init(&b, BUF_MAX_TEXT);
    *x = &gap, alone.next = NULL;
    ast_print(&alone, &plain, &b);
    *x = all;
    buf_addc(&q->ask, '\n');
    knowledge_add_fenced(q, b.p, &q->ask);
    buf_free(&b);
    return true;
}

/* True if x reads its inputs at index i alone. */
static bool knowledge_expr_is_scalar(const struct ax *x)
{
    bool all = !x || x->kind != AX_INDEX || ax_is_id(x->kid[1], "i");

    for (int i = 0; all && x && i < x->n; i++)
        all = knowledge_expr_is_scalar(x->kid[i]);
    return all;
}

/* Every tensor is read and written at i alone. */
static bool knowledge_is_scalar(const struct as *x)
{
    for (; x; x = x->next)
        if (!knowledge_expr_is_scalar(x->e) || !knowledge_expr_is_scalar(x->e2) || !knowledge_is_scalar(x->body) ||
            !knowledge_is_scalar(x->other))
            return false;
    return true;
}

/* x[i] is x. */
static struct ax *knowledge_scalar_of(struct ax *x)
{
    if (x && x->kind == AX_INDEX)
        return x->kid[0];
    for (int i = 0; x && i < x->n; i++)
        x->kid[i] = knowledge_scalar_of(x->kid[i]);
    return x;
}

/* "out[i] = e" is "return e". */
static void knowledge_scalar_statements(struct as *x)
{
    for (; x; x = x->next) {
        if (x->kind == AS_EXPR && x->e->kind == AX_BINARY && !strcmp(x->e->s, "=") && x->e->kid[0]->kind == AX_INDEX) {
            x->kind = AS_RETURN;
            x->e = x->e->kid[1];
        }
        x->e = knowledge_scalar_of(x->e), x->e2 = knowledge_scalar_of(x->e2);
        knowledge_scalar_statements(x->body), knowledge_scalar_statements(x->other);
    }
}

/* Makes the answer that states one element as a device function. False: the kernel has no such form. */
static bool knowledge_answer_function(struct knowledge_question *q)
{
    static const struct ast_style plain;
    struct as **x = knowledge_element_of(q);
    struct buf b;
    bool first = true;

    if (knowledge_needs_shapes(q) || !x || !knowledge_is_scalar(*x))
        return false;
    knowledge_scalar_statements(*x);
    buf_init(&b, BUF_MAX_TEXT);
    buf_adds(&b, "__device__ float f(");
    for (int i = 0; i < q->kernel->n_param; i++)
        if (strstr(q->kernel->param[i].type, "const float")) {
            buf_addf(&b, "%sfloat %s", first ? "" : ", ", q->kernel->param[i].name);
            first = false;
        }
    buf_adds(&b, ") {\n");
    for (const struct as *p = *x; p; p = p->next)
        as_print(p, 1, &plain, &b);
    buf_adds(&b, "}\n");
    knowledge_add_fenced(q, b.p, &q->answer);
    buf_free(&b);
    return true;
}

/* Where one statement does it. */
static bool knowledge_answer_expression(struct knowledge_question *q)
{
    struct as **x = knowledge_element_of(q);

    if (knowledge_needs_shapes(q) || !x || !*x || (*x)->next || (*x)->kind != AS_EXPR ||
        !knowledge_is_scalar(*x))
        return false;
    knowledge_scalar_statements(*x);
    ax_print((*x)->e, NULL, &q->answer);
    return true;
}

static bool knowledge_answer_formula(struct knowledge_question *q)
{
    return q->g->n_nodes == 1 && q->g->node[0].c.op->expr && wording_formula(&q->g->node[0].c, &q->answer);
}

/* ---- forms ---- */

static const struct knowledge_form {
    const char *before, *behind; /* the language's name: "Write these statements in CUDA." */
    bool (*answer)(struct knowledge_question *q);
} forms[WORDINGS] = {
    {"Write these statements in ", ".", knowledge_answer_statements},
    {"What does one thread do for one output? Answer in ", ".", knowledge_answer_statements},
    {"Translate to ", ", for a single output.", knowledge_answer_statements},
    {"Fill in the body of the ", " kernel.", knowledge_answer_frame},
    {"Which statements are missing in the ", " kernel below?", knowledge_answer_frame},
    {"As a __device__ function of one element, in ", ":", knowledge_answer_function},
    {"As one expression of ", ":", knowledge_answer_expression},
    {"What is computed here? A formula, not ", ".", knowledge_answer_formula},
};

/* The question stands in front of what its answer may add to it. */
static bool knowledge_ask(struct knowledge_question *q, int form)
{
    buf_clear(&q->ask), buf_clear(&q->answer);
    buf_addf(&q->ask, "%s%s%s\n```python\n", forms[form].before, knowledge_language(q, false), forms[form].behind);
    knowledge_add_torch(q, &q->ask);
    buf_adds(&q->ask, "```");
    if (knowledge_needs_shapes(q))
        knowledge_add_shapes(q->g, &q->ask);
    return forms[form].answer(q);
}

/* One kernel, of which one thread makes one output; its first schedule. */
static bool knowledge_make_kernel(struct knowledge_question *q, struct rng *r)
{
    struct program_style style = {.sizes = SIZES_PARAMS, .terse = true};
    struct err e = ERR_INIT;

    q->k = arena_alloc(&q->a, sizeof *q->k);
    fuse(q->g, FUSE_ALL, &q->a, q->k);
    if (q->k->n != 1 || fuse_schedule(q->k, NULL) < 0)
        return false;
    if (knowledge_needs_shapes(q) && q->k->k[0].nest.class == NEST_MAP &&
        draw_below(r, BROADCAST_ONE_IN))
        return false;
    q->f = program_cuda(q->g, q->k, &style, &q->a, &e);
    for (q->kernel = q->f; q->kernel && !(q->kernel->name && strstr(q->kernel->type, "__global__"));)
        q->kernel = q->kernel->next;
    return q->kernel != NULL;
}

json_t *knowledge_json(const struct problem_source *s, int index, const char *hash, json_t *task, const char *evidence,
                       const struct buf *ask, const struct buf *answer)
{
    char id[64];
    json_t *m = prompt_start(ask->p);

    prompt_say(m, "assistant", answer->p);
    snprintf(id, sizeof id, "knowledge-%d-%s", index, hash);
    return json_pack("{s:s, s:s, s:o, s:o, s:n, s:{s:s, s:I, s:s}, s:s}", "id", id, "kind", "knowledge", "messages", m,
                     "task", task, "verdict", "provenance", "generator", SYNTH_GENERATOR, "seed",
                     (json_int_t)s->o->seed, "evidence", evidence, "split", "train");
}

/* A question and its answer as a record. New. */
static json_t *knowledge_record_of(const struct knowledge_question *q, int index)
{
    char hash[17];

    snprintf(hash, sizeof hash, "%016" PRIx64, dag_hash(q->g, false));
    return knowledge_json(q->s, index, hash, record_task(q->g, NULL, "", hash), "registry", &q->ask, &q->answer);
}

/* In the form that is drawn, or where that does not suit as statements. */
static json_t *knowledge_ask_about(const struct problem_source *s, const struct dag *g, struct rng *r, int index)
{
    struct knowledge_question q = {.s = s, .g = g};
    int form = wording_draw(r, s->o->prompt_format.wordings);
    json_t *v = NULL;

    buf_init(&q.ask, BUF_MAX_TEXT), buf_init(&q.answer, BUF_MAX_TEXT);
    if (knowledge_make_kernel(&q, r)) {
        if (forms[form].answer == knowledge_answer_frame)
            wording_names(q.f, wording_draw(r, s->o->prompt_format.wordings));
        if ((knowledge_ask(&q, form) || knowledge_ask(&q, 0)) && q.answer.n < MAX_ANSWER &&
            graph_set_add(s->asked, hash64(q.ask.p, q.ask.n, 1)))
            v = knowledge_record_of(&q, index);
    }
    buf_free(&q.ask), buf_free(&q.answer);
    arena_free(&q.a);
    return v;
}

json_t *knowledge_record(const struct problem_source *s, int index)
{
    struct dag_limits l = {.l = {.max_numel = 256, .max_work = 1 << 14, .dtypes = 1u << DT_F32, .nice = true},
                           .min_ops = 1, .max_ops = 4, .anchors = 0};
    struct dag *g = xmalloc(sizeof *g);
    json_t *v = NULL;
    struct rng r;

    rng_seed(&r, s->o->seed, (uint64_t)99 << 48 | (uint64_t)index);
    for (int tries = 0; tries < 2000 && !v; tries++) {
        dag_draw(s->table[OP_KNOWN], &r, &l, g);
        if (!heldout_graph(dag_hash(g, false)) && heldout_spell(g, false, &r) && knowledge_is_said(g) &&
            !heldout_has_attribute(g))
            v = knowledge_ask_about(s, g, &r, index);
    }
    free(g);
    return v;
}
