/* program.c - see program.h. */
#include "synth/program.h"

#include <stdio.h>
#include <string.h>

/* How values are called: in Python's forward, and in C++. */
struct program_names {
    char py[DAG_VALUES][40], c[DAG_VALUES][24];
    char module[DAG_NODES][24]; /* "conv", without "self." */
};

static const char *const letters[] = {"x", "y", "z", "other", "extra", "third", "side", "more"};

/* The attribute's name of node n, numbered where the operator stands more than once. */
static void program_module_name(const struct dag *g, int n, char out[24])
{
    const char *s = g->node[n].c.op->name;
    size_t len = strcspn(s, "0123456789");
    int before = 0, all = 0;

    for (int i = 0; i < g->n_nodes; i++)
        if (g->node[i].c.op->spell[g->node[i].spelling].init && !strncmp(g->node[i].c.op->name, s, len))
            all++, before += i < n;
    snprintf(out, 24, all > 1 ? "%.*s%d" : "%.*s", (int)(len < 18 ? len : 18), s, before + 1);
}

/* Names all values and modules in Python and in C. */
static void program_name_values(const struct dag *g, struct program_names *m)
{
    int inputs = 0;

    for (int n = 0; n < g->n_nodes; n++)
        program_module_name(g, n, m->module[n]);
    for (int i = 0; i < g->n_values; i++) {
        const struct dag_value *v = &g->value[i];
        if (v->kind == VALUE_INPUT) {
            snprintf(m->py[i], 40, "%s", letters[inputs]);
            snprintf(m->c[i], 24, "%s", letters[inputs++]);
        } else if (v->kind == VALUE_PARAM) {
            const char *p = g->node[v->node].c.op->param[v->slot - 1];
            snprintf(m->py[i], 40, "self.%s.%s", m->module[v->node], p);
            snprintf(m->c[i], 24, g->n_nodes > 1 ? "%s%d" : "%s", p, v->node + 1);
        } else {
            snprintf(m->py[i], 40, "t%d", v->node + 1);
            snprintf(m->c[i], 24, "t%d", v->node + 1);
        }
    }
}

static void program_python_shape(const struct tdesc *t, struct buf *out)
{
    for (int i = 0; i < t->rank; i++)
        buf_addf(out, "%s%d", i ? ", " : "", t->d[i]);
    if (!t->rank)
        buf_adds(out, "()");
}

static const char *const casts[] = {"", ".half()", ".bfloat16()", ""};

/* True if a node is spelled with torch.nn.functional. */
static bool program_any_functional(const struct dag *g)
{
    for (int n = 0; n < g->n_nodes; n++)
        if (strstr(g->node[n].c.op->spell[g->node[n].spelling].call, "F."))
            return true;
    return false;
}

/* Whether a node needs a line in __init__ of the task, or (program) holds parameters. */
static bool program_has_module(const struct dag_node *p, bool with_params)
{
    return p->c.op->spell[p->spelling].init && (!with_params || p->c.op->n_params);
}

/* Appends __init__ where modules have parameters. */
static void program_add_init(const struct dag *g, const struct program_names *m, bool program, struct buf *out)
{
    bool any = false;

    for (int n = 0; n < g->n_nodes; n++)
        any |= program_has_module(&g->node[n], program);
    if (!any)
        return;
    buf_adds(out, "    def __init__(self):\n        super().__init__()\n");
    for (int n = 0; n < g->n_nodes; n++) {
        const struct dag_node *p = &g->node[n];
        if (!program_has_module(p, program))
            continue;
        buf_addf(out, "        self.%s = ", m->module[n]);
        op_spell(&p->c, p->c.op->spell[p->spelling].init, NULL, NULL, out);
        buf_addf(out, "%s\n", p->c.op->n_params ? casts[p->c.in[0].dtype] : "");
    }
    buf_addc(out, '\n');
}

static void program_add_arguments(const struct dag *g, const struct program_names *m, struct buf *out)
{
    for (int i = 0; i < g->n_values; i++)
        if (g->value[i].kind == VALUE_INPUT)
            buf_addf(out, ", %s", m->py[i]);
}

/* Appends forward's line of node n. */
static void program_add_forward_line(const struct dag *g, const struct program_names *m, int n, struct buf *out)
{
    const struct dag_node *p = &g->node[n];
    const char *names[OP_INPUTS];
    char module[40];

    snprintf(module, sizeof module, "self.%s", m->module[n]);
    for (int i = 0; i < p->c.n_in; i++)
        names[i] = m->py[p->in[i]];
    buf_adds(out, n == g->n_nodes - 1 ? "        return " : "        ");
    if (n < g->n_nodes - 1)
        buf_addf(out, "%s = ", m->py[p->out]);
    op_spell(&p->c, p->c.op->spell[p->spelling].call, names, module, out);
    buf_addc(out, '\n');
}

/* Appends the expression that draws one input. below: bound of an index tensor, or 0. */
static void program_add_input(const struct tdesc *t, int below, struct op_interval domain, struct buf *out)
{
    if (t->dtype == DT_I64) {
        buf_addf(out, below ? "torch.randint(0, %d, (" : "torch.randint(-50, 50, (", below);
        program_python_shape(t, out);
        buf_adds(out, t->rank == 1 ? ",))" : "))");
        return;
    }
    if (domain.lo < domain.hi) {
        buf_addf(out, "%storch.rand(", *casts[t->dtype] ? "(" : "");
        program_python_shape(t, out);
        buf_addf(out, ") * %.6g + %.6g%s%s", domain.hi - domain.lo, domain.lo, *casts[t->dtype] ? ")" : "",
                 casts[t->dtype]);
        return;
    }
    buf_adds(out, "torch.randn(");
    program_python_shape(t, out);
    buf_addf(out, ")%s", casts[t->dtype]);
}

/* A result takes its first operand's name where nothing else reads that. */
static void program_reuse_names(const struct dag *g, struct program_names *m)
{
    for (int n = 0; n < g->n_nodes - 1; n++) {
        const struct dag_node *p = &g->node[n];
        const struct dag_value *v = &g->value[p->in[0]];
        if (v->kind != VALUE_PARAM && v->uses == 1)
            memcpy(m->py[p->out], m->py[p->in[0]], sizeof m->py[0]);
    }
}

/* Appends a docstring with a line for each operator. */
static void program_add_docstring(const struct dag *g, struct buf *out)
{
    buf_adds(out, "    \"\"\"");
    for (int n = 0; n < g->n_nodes; n++)
        buf_addf(out, "%s%s: %s.", n ? "\n    " : "", g->node[n].c.op->name,
                 g->node[n].c.op->about ? g->node[n].c.op->about : "an operator");
    buf_adds(out, "\"\"\"\n\n");
}

void program_task(const struct dag *g, const struct program_style *s, struct buf *out)
{
    struct program_names m;
    bool first = true;

    program_name_values(g, &m);
    if (s->reuse)
        program_reuse_names(g, &m);
    buf_addf(out, "import torch\nimport torch.nn as nn\n%s\n\nclass Model(nn.Module):\n",
             program_any_functional(g) ? "import torch.nn.functional as F\n" : "");
    if (s->docstring)
        program_add_docstring(g, out);
    program_add_init(g, &m, false, out);
    buf_adds(out, "    def forward(self");
    program_add_arguments(g, &m, out);
    buf_adds(out, "):\n");
    for (int n = 0; n < g->n_nodes; n++)
        program_add_forward_line(g, &m, n, out);
    buf_adds(out, "\n\ndef get_inputs():\n    return [");
    for (int i = 0; i < g->n_values; i++)
        if (g->value[i].kind == VALUE_INPUT) {
            buf_adds(out, first ? "" : ", ");
            program_add_input(&g->value[i].t, dag_bound(g, i), dag_domain(g, i), out);
            first = false;
        }
    buf_adds(out, "]\n\n\ndef get_init_inputs():\n    return []\n");
}

/* ---- the program ---- */

/* Appends the head of the C++ function that launches the kernels. */
static void program_host_signature(const struct dag *g, const struct program_names *m, struct buf *out)
{
    bool first = true;

    buf_adds(out, "torch::Tensor forward(");
    for (int i = 0; i < g->n_values; i++)
        if (g->value[i].kind != VALUE_NODE) {
            buf_addf(out, "%storch::Tensor %s", first ? "" : ", ", m->c[i]);
            first = false;
        }
    buf_addc(out, ')');
}

static const char *program_out_name(const struct dag *g, const struct program_names *m, int value)
{
    return value == dag_result(g) ? "out" : m->c[value];
}

/* "relu_kernel", "relu_kernel2" of several; terse: "kernel", "kernel2". */
static void program_kernel_name(const struct kernels *k, int i, bool terse, size_t size, char ret[])
{
    char number[12] = "";

    if (k->n > 1)
        snprintf(number, sizeof number, "%d", i + 1);
    snprintf(ret, size, "%.40s%skernel%s", terse ? "" : k->k[i].nest.about, terse ? "" : "_", number);
}

struct afun *program_cuda(const struct dag *g, const struct kernels *k, const struct program_style *s,
    struct arena *a, struct err *e)
{
    struct buf device, host;
    struct program_names m;
    struct afun *f;

    program_name_values(g, &m);
    buf_init(&device, BUF_MAX_TEXT), buf_init(&host, BUF_MAX_TEXT);
    buf_adds(&device, "#include <torch/extension.h>\n#include <cuda_runtime.h>\n");
    for (int i = 0; i < k->n; i++) {
        char kernel[64];
        struct placing p = {.kernel = kernel, .out = program_out_name(g, &m, k->k[i].out), .sizes = s->sizes,
                            .terse = s->terse};
        program_kernel_name(k, i, s->terse, sizeof kernel, kernel);
        for (int j = 0; j < k->k[i].nest.n_in; j++)
            p.name[j] = m.c[k->k[i].nest.in[j].value];
        memcpy(p.tuned, k->k[i].tuned, sizeof p.tuned);
        emit_allocation(&k->k[i].nest, k->k[i].s, &p, &host);
        buf_adds(&host, k->n > 1 ? "{\n" : "");
        emit_nest(&k->k[i].nest, k->k[i].s, &p, &device, &host);
        buf_adds(&host, k->n > 1 ? "}\n" : "");
    }
    program_host_signature(g, &m, &device);
    buf_addf(&device, " {\n%sreturn out;\n}\n", host.p);
    f = ast_parse(a, device.p, e);
    if (!f)
        err_prefix(e, "%s", device.p);
    buf_free(&device), buf_free(&host);
    ast_tidy(f);
    return f;
}

/* Appends the arguments with which Python calls that function. */
static void program_call_arguments(const struct dag *g, const struct program_names *m, struct buf *out)
{
    bool first = true;

    for (int i = 0; i < g->n_values; i++)
        if (g->value[i].kind != VALUE_NODE) {
            buf_addf(out, "%s%s", first ? "" : ", ", m->py[i]);
            first = false;
        }
}

void program_file(const struct dag *g, const struct kernels *k, const struct afun *cuda, const struct program_style *s,
                  struct buf *out)
{
    struct program_names m;

    (void)k;
    program_name_values(g, &m);
    buf_adds(out, "import torch\nimport torch.nn as nn\nfrom torch.utils.cpp_extension import load_inline\n\nsource = "
        "r\"\"\"\n");
    ast_print(cuda, &s->c, out);
    buf_adds(out, "\"\"\"\n\nmodule = load_inline(name=\"kernels\", cpp_sources=\"");
    program_host_signature(g, &m, out);
    buf_adds(out, ";\", cuda_sources=source,\n                     functions=[\"forward\"])\n\n\nclass "
        "ModelNew(nn.Module):\n");
    program_add_init(g, &m, true, out);
    buf_adds(out, "    def forward(self");
    program_add_arguments(g, &m, out);
    buf_adds(out, "):\n        return module.forward(");
    program_call_arguments(g, &m, out);
    buf_adds(out, ")\n");
}
