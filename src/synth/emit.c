/* emit.c - see emit.h. The torch line and the CUDA line of a node come from the same registry row. */
#include "synth/emit.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "synth/text.h"

/* ---- one node as one line ---- */

static void expand_op(struct buf *out, const char *tmpl, const char *x, const char *y, double c, const char *suffix)
{
    struct bindings t = {0};
    char number[40];

    text_number(c, number);
    strcat(number, suffix);
    text_bind(&t, "x", x);
    text_bind(&t, "y", y);
    text_bind(&t, "c", number);
    text_expand(out, tmpl, &t);
}

/* Names of values: x0 is what comes in, node i makes x(i+1). An operator reads the spine's latest value. */
static int value_before(const struct graph *g, int node)
{
    int x = 0;

    for (int i = 0; i < node; i++)
        if (!g->node[i].save)
            x = i + 1;
    return x;
}

static int saved_before(const struct graph *g, int node)
{
    int h = 0;

    for (int i = 0; i < node; i++)
        if (g->node[i].save)
            h = i + 1;
    return h;
}

static void torch_line(const struct graph *g, int i, struct buf *out)
{
    const struct node *p = &g->node[i];
    char x[16], y[16] = "y";

    snprintf(x, sizeof x, "x%d", value_before(g, i));
    if (p->operand == OPERAND_H)
        snprintf(y, sizeof y, "x%d", saved_before(g, i));
    else if (p->operand >= 0)
        snprintf(y, sizeof y, "%c", graph_input_name(g, p->operand));
    buf_addf(out, "        x%d = ", i + 1);
    expand_op(out, p->op->torch, x, y, p->c, "");
    buf_addc(out, '\n');
}

/* index: how a full, row or column operand is read at this place of this template. */
static void cuda_operand(const struct graph *g, int i, const char *const index[3], char out[32])
{
    int k = g->node[i].operand;

    if (k == OPERAND_H)
        snprintf(out, 32, "x%d", saved_before(g, i));
    else if (k >= 0)
        snprintf(out, 32, "%c%s", graph_input_name(g, k),
                 index[g->input[k] == ROLE_ROW ? 1 : g->input[k] == ROLE_COL ? 2 : 0]);
}

static void cuda_lines(const struct graph *g, int from, int to, const char *const index[3], struct buf *out)
{
    char x[16], y[32] = "";

    for (int i = from; i < to; i++) {
        snprintf(x, sizeof x, "x%d", value_before(g, i));
        cuda_operand(g, i, index, y);
        buf_addf(out, "float x%d = ", i + 1);
        expand_op(out, g->node[i].op->cuda, x, y, g->node[i].c, "f");
        buf_adds(out, ";\n");
    }
}

/* ---- the task file ---- */

static bool uses_functional(const struct graph *g)
{
    for (int i = 0; i < g->n; i++)
        if (strstr(g->node[i].op->torch, "F."))
            return true;
    return false;
}

/* "x0, y" in the task, "x, y" in the program. */
static void forward_arguments(const struct graph *g, const char *first, struct buf *out)
{
    buf_adds(out, first);
    for (int i = 1; i < g->n_in; i++)
        if (g->input[i] != ROLE_WEIGHT && g->input[i] != ROLE_BIAS)
            buf_addf(out, ", %c", graph_input_name(g, i));
}

static const char *size_names(const struct graph *g, int i)
{
    unsigned f = g->anchor < 0 ? 0 : g->node[g->anchor].op->flags;

    switch (g->input[i]) {
    case ROLE_ROW: return "N";
    case ROLE_COL: return "M, 1";
    case ROLE_A: return f & OP_A_T ? "K, M" : "M, K";
    case ROLE_B: return f & OP_B_T ? "N, K" : "K, N";
    case ROLE_FULL:
    case ROLE_WEIGHT:
    case ROLE_BIAS: break;
    }
    return "M, N";
}

static void add_linear_init(const struct graph *g, struct buf *out)
{
    if (graph_anchor(g) == ANCHOR_LINEAR)
        buf_adds(out, "    def __init__(self, k, n):\n"
                      "        super().__init__()\n"
                      "        self.fc = nn.Linear(k, n)\n\n");
}

void emit_task(const struct graph *g, struct buf *out)
{
    bool linear = graph_anchor(g) == ANCHOR_LINEAR, product = linear || graph_anchor(g) == ANCHOR_MATMUL;

    buf_adds(out, "import torch\nimport torch.nn as nn\n");
    if (uses_functional(g))
        buf_adds(out, "import torch.nn.functional as F\n");
    if (product)
        buf_addf(out, "\nM, N, K = %d, %d, %d\n", g->M, g->N, g->K);
    else
        buf_addf(out, "\nM, N = %d, %d\n", g->M, g->N);
    buf_adds(out, "\nclass Model(nn.Module):\n");
    add_linear_init(g, out);
    buf_adds(out, "    def forward(self, ");
    forward_arguments(g, "x0", out);
    buf_adds(out, "):\n");
    for (int i = 0; i < g->n; i++)
        torch_line(g, i, out);
    buf_addf(out, "        return x%d\n\ndef get_inputs():\n    return [", g->n);
    for (int i = 0; i < g->n_in; i++)
        if (g->input[i] != ROLE_WEIGHT && g->input[i] != ROLE_BIAS)
            buf_addf(out, "%storch.randn(%s)", i ? ", " : "", size_names(g, i));
    buf_addf(out, "]\n\ndef get_init_inputs():\n    return [%s]\n", linear ? "K, N" : "");
}

/* ---- the kernel ---- */

/* Values that bindings borrow until the expansion is done. */
struct pieces {
    struct buf ptrs, args, inargs, pre, post, prefn, up, uload, ui, ulane[4];
    char B[16], B1[16], H[16], G[16], v[16], out[16], last[16];
};

static void pieces_init(struct pieces *p)
{
    struct buf *all[] = {&p->ptrs, &p->args,  &p->inargs,   &p->pre,      &p->post,     &p->prefn,   &p->up,
                         &p->uload, &p->ui, &p->ulane[0], &p->ulane[1], &p->ulane[2], &p->ulane[3]};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buf_init(all[i], BUF_MAX_TEXT);
}

static void pieces_free(struct pieces *p)
{
    struct buf *all[] = {&p->ptrs, &p->args,  &p->inargs,   &p->pre,      &p->post,     &p->prefn,   &p->up,
                         &p->uload, &p->ui, &p->ulane[0], &p->ulane[1], &p->ulane[2], &p->ulane[3]};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buf_free(all[i]);
}

static void fill_arguments(const struct graph *g, struct pieces *p)
{
    for (int i = 0; i < g->n_in; i++) {
        char c = graph_input_name(g, i);

        buf_addf(&p->ptrs, "const float* %c, ", c);
        buf_addf(&p->args, "%c.data_ptr<float>(), ", c);
        buf_addf(&p->inargs, "%s%c.data_ptr<float>()", i ? ", " : "", c);
    }
    buf_adds(&p->ptrs, "float* o");
    buf_adds(&p->args, "o.data_ptr<float>()");
}

static void fill_vector_operand(const struct graph *g, struct pieces *p)
{
    if (g->n_in < 2)
        return;
    buf_addf(&p->up, ", float %c", graph_input_name(g, 1));
    buf_addf(&p->uload, "float4 u = *(const float4*)(%c + i);", graph_input_name(g, 1));
    buf_addf(&p->ui, ", %c[i]", graph_input_name(g, 1));
    for (int i = 0; i < 4; i++)
        buf_addf(&p->ulane[i], ", u.%c", "xyzw"[i]);
}

static void fill_chains(const struct graph *g, const struct tmpl *t, struct pieces *p)
{
    int split = g->anchor < 0 ? g->n : g->anchor;

    cuda_lines(g, 0, split, t->index, &p->pre);
    if (graph_anchor(g) == ANCHOR_LINEAR)
        buf_adds(&p->post, "$out = $out + b[j];\n");
    cuda_lines(g, graph_epilogue(g), g->n, t->index, &p->post);
    if (p->pre.n)
        buf_adds(&p->prefn, "__device__ float pre(float x0) {\n    $pre\n    return $v;\n}\n");
}

static void bind_schedule(const struct schedule *s, struct pieces *p, struct bindings *b)
{
    snprintf(p->B, sizeof p->B, "%d", s->block);
    snprintf(p->B1, sizeof p->B1, "%d", s->block - 1);
    snprintf(p->H, sizeof p->H, "%d", s->block / 2);
    snprintf(p->G, sizeof p->G, "%d", s->grid);
    text_bind(b, "B", p->B);
    text_bind(b, "B1", p->B1);
    text_bind(b, "H", p->H);
    text_bind(b, "G", p->G);
}

static void bind_pieces(const struct graph *g, struct pieces *p, struct bindings *b)
{
    bool broadcast = false;

    for (int i = 1; i < g->n_in; i++)
        broadcast |= g->input[i] == ROLE_ROW || g->input[i] == ROLE_COL;
    snprintf(p->v, sizeof p->v, "x%d", g->anchor < 0 ? g->n : value_before(g, g->anchor));
    snprintf(p->out, sizeof p->out, "x%d", g->anchor + 1);
    snprintf(p->last, sizeof p->last, "x%d", g->n);
    text_bind(b, "v", p->v);
    text_bind(b, "out", p->out);
    text_bind(b, "last", p->last);
    text_bind(b, "ptrs", p->ptrs.p);
    text_bind(b, "args", p->args.p);
    text_bind(b, "inargs", p->inargs.p);
    text_bind(b, "pre", p->pre.p);
    text_bind(b, "post", p->post.p);
    text_bind(b, "Np", broadcast ? ", int N" : "");
    text_bind(b, "Na", broadcast ? ", x.size(1)" : "");
    text_bind(b, "up", p->up.p);
    text_bind(b, "uload", p->uload.p);
    text_bind(b, "ui", p->ui.p);
    for (int i = 0; i < 4; i++)
        text_bind(b, (const char *[]){"ux", "uy", "uz", "uw"}[i], p->ulane[i].p);
    text_bind_call(b, "P", p->pre.n ? "pre($a)" : "");
}

static const char *reduced_length(enum anchor a)
{
    return a == ANCHOR_COL_REDUCE ? "M" : a == ANCHOR_FULL_REDUCE ? "n" : "N";
}

static void bind_anchor(const struct graph *g, struct bindings *b)
{
    const struct op *op = g->anchor < 0 ? NULL : g->node[g->anchor].op;
    bool linear = op && op->anchor == ANCHOR_LINEAR;

    if (!op)
        return;
    text_bind(b, "init", op->text.init ? op->text.init : "");
    text_bind(b, "acc", op->text.acc ? op->text.acc : "");
    text_bind(b, "fin", op->text.fin ? op->text.fin : "");
    text_bind(b, "apply", op->anchor == ANCHOR_SCAN ? op->flags & OP_EXCLUSIVE ? "a - $v" : "a" : op->text.apply);
    text_bind_call(b, "M", op->text.merge ? op->text.merge : "");
    text_bind(b, "n", reduced_length(op->anchor));
    text_bind(b, "J", op->flags & OP_REVERSE ? "N - 1 - j" : "j");
    text_bind(b, "R", op->flags & OP_TRANSPOSES ? "N" : "M");
    text_bind(b, "C", op->flags & OP_TRANSPOSES ? "M" : "N");
    text_bind(b, "A", op->flags & OP_A_T ? "x[q * M + r]" : "x[r * K + q]");
    text_bind(b, "Y", linear ? "w[j * K + q]" : op->flags & OP_B_T ? "y[j * K + q]" : "y[q * N + j]");
    text_bind(b, "Y0", linear ? "w" : "y");
    text_bind(b, "dM", op->flags & OP_A_T ? "1" : "0");
    text_bind(b, "dK", op->flags & OP_A_T ? "0" : "1");
    text_bind(b, "dN", op->flags & OP_B_T ? "0" : "1");
}

/* "torch::Tensor f(torch::Tensor x, torch::Tensor y)" */
static void host_signature(const struct graph *g, struct buf *out)
{
    buf_adds(out, "torch::Tensor f(");
    for (int i = 0; i < g->n_in; i++)
        buf_addf(out, "%storch::Tensor %c", i ? ", " : "", graph_input_name(g, i));
    buf_addc(out, ')');
}

/* prefn holds "$pre", so it is expanded ahead of the template that includes it. */
static void expand_prefn(struct pieces *p, const struct bindings *b)
{
    struct buf text;

    if (!p->prefn.n)
        return;
    buf_init(&text, BUF_MAX_TEXT);
    text_expand(&text, p->prefn.p, b);
    buf_free(&p->prefn);
    p->prefn = text;
}

void emit_statements(const struct graph *g, const char *const index[3], struct buf *torch, struct buf *cuda)
{
    struct bindings none = {0};
    struct buf lines;

    for (int i = 0; i < g->n; i++)
        torch_line(g, i, torch);
    buf_init(&lines, BUF_MAX_TEXT);
    cuda_lines(g, 0, g->n, index, &lines);
    text_bind(&none, "lines", lines.p);
    text_expand(cuda, "        $lines\n", &none);
    buf_free(&lines);
}

void emit_cuda(const struct graph *g, const struct tmpl *t, const struct schedule *s, struct buf *cuda)
{
    struct bindings b = {0}, host = {0};
    struct pieces p;

    pieces_init(&p);
    fill_arguments(g, &p);
    fill_vector_operand(g, &p);
    fill_chains(g, t, &p);
    bind_schedule(s, &p, &b);
    bind_pieces(g, &p, &b);
    bind_anchor(g, &b);
    expand_prefn(&p, &b);
    text_bind(&b, "prefn", p.prefn.p);
    text_expand(cuda, t->kernel, &b);
    host = b;
    text_bind(&host, "host", t->host);
    host_signature(g, cuda);
    text_expand(cuda, " {\n    $host\n    return o;\n}\n", &host);
    pieces_free(&p);
}

void emit_program(const struct graph *g, const char *strategy, const char *cuda, struct buf *out)
{
    bool linear = graph_anchor(g) == ANCHOR_LINEAR;

    buf_addf(out,
             "# %s\nimport torch\nimport torch.nn as nn\nfrom torch.utils.cpp_extension import load_inline\n\n"
             "src = r\"\"\"\n%s\"\"\"\nm = load_inline(\"m\", \"",
             strategy, cuda);
    host_signature(g, out);
    buf_adds(out, ";\", src, functions=[\"f\"])\n\nclass ModelNew(nn.Module):\n");
    add_linear_init(g, out);
    buf_adds(out, "    def forward(self, ");
    forward_arguments(g, "x", out);
    buf_adds(out, "):\n        return m.f(");
    forward_arguments(g, "x", out);
    buf_adds(out, linear ? ", self.fc.weight, self.fc.bias)\n" : ")\n");
}
