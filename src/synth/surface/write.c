/* write.c - see write.h. */
#include "synth/surface/write.h"

#include <ctype.h>
#include <string.h>

#include "synth/heldout.h"

/* How often a part is said in general words, by the words of another kind, and a module by no words about it. */
#define SHARE_GENERAL_PHRASES  0.1
#define SHARE_AGED_PHRASES     0.06
#define SHARE_SILENT_SUMMARIES 0.06

/* ---- signatures ---- */

/* Arguments without a default come first. */
static void write_order_args(struct making *m)
{
    struct making_arg sorted[MAKING_ARGS];
    int n = 0;

    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < m->n_args; i++)
            if ((m->arg[i].def != NULL) == pass)
                sorted[n++] = m->arg[i];
    memcpy(m->arg, sorted, sizeof *sorted * (size_t)n);
}

static const char *write_annotation(const char *type)
{
    return !strcmp(type, "Tuple") ? "Tuple[int, ...]" : type;
}

/* Appends the head of __init__ with its arguments. */
static void write_add_init_head(struct making *m, struct buf *out)
{
    buf_adds(out, "    def __init__(self");
    for (int i = 0; i < m->n_args; i++) {
        const struct making_arg *a = &m->arg[i];
        buf_addf(out, ", %s", a->name);
        if (m->style.annotate)
            buf_addf(out, ": %s", write_annotation(a->type));
        if (a->def)
            buf_addf(out, m->style.annotate ? " = %s" : "=%s", a->def);
    }
    buf_adds(out, "):\n");
}

/* Appends the head of forward with its inputs. */
static void write_add_forward_head(struct making *m, struct buf *out)
{
    buf_adds(out, "    def forward(self");
    for (int i = 0; i < m->n_inputs; i++)
        buf_addf(out, m->style.annotate ? m->input[i].rank < 0 ? ", %s: float" : ", %s: torch.Tensor" : ", %s",
                 m->input[i].name);
    buf_adds(out, m->style.annotate ? ") -> torch.Tensor:\n" : "):\n");
}

static bool write_has_init(const struct making *m)
{
    return m->n_args || m->init.n || m->style.empty_init;
}

/* ---- docstrings ---- */

/* The input's shape as a docstring writes it. */
static const char *write_shape_words(struct making *m, const struct making_input *in)
{
    const char *s = "";

    for (int i = 0; i < in->rank; i++)
        s = making_format(m, "%s%s%s", s, i ? ", " : "", in->dim[i]);
    return making_format(m, "(%s%s)", s, in->rank == 1 ? "," : "");
}

static const char *write_capital(struct making *m, const char *s)
{
    char *t = arena_strdup(&m->a, s);

    t[0] = (char)toupper((unsigned char)t[0]);
    return t;
}

/* A kind's form in words that tell little. */
static const char *write_general_phrase(struct making *m, const struct kind *k)
{
    static const char *const words[N_FORMS] = {[FORM_MAP] = "an elementwise operation|an activation|a map",
                                               [FORM_PARAM] = "an elementwise operation",
                                               [FORM_REDUCE] = "a reduction",
                                               [FORM_SPATIAL] = "a reduction|pooling",
                                               [FORM_NORM] = "a normalization layer|normalization",
                                               [FORM_POOL] = "a pooling layer|pooling",
                                               [FORM_CONV] = "a convolution|a convolution layer|convolution",
                                               [FORM_LOSS] = "a loss",
                                               [FORM_ROWLOSS] = "a loss",
                                               [FORM_MATMUL] = "a product|matrix multiplication",
                                               [FORM_SCAN] = "a scan",
                                               [FORM_RESIDUAL] = "a residual connection"};

    return making_pick(m, words[k->form] ? words[k->form] : k->say, '|');
}

/* The words of another kind of this form, as documentation has that has aged; of a taught one, so that training never
 * says an unseen operator's name. */
static const char *write_other_phrase(struct making *m, const struct kind *k)
{
    static const struct kind *const tables[] = {map_kinds, reduce_kinds, window_kinds, norm_kinds, loss_kinds};
    const struct kind *fit[128];
    int n = 0;

    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct kind *o = tables[t]; o->name && n < 128; o++)
            if (o->form == k->form && heldout_name_class(kind_operator(o->name)) == OP_TAUGHT)
                fit[n++] = o;
    return making_pick(m, n ? fit[making_draw(m, 0, n - 1)]->say : k->say, '|');
}

/* What part i does, in words. Some tell little and some are wrong: what a module does, its code says. */
static const char *write_phrase(struct making *m, int i)
{
    const struct kind *k = m->kind[i];

    if (making_chance(m, SHARE_GENERAL_PHRASES))
        return write_general_phrase(m, k);
    return making_chance(m, SHARE_AGED_PHRASES) ? write_other_phrase(m, k) : making_pick(m, k->say, '|');
}

/* A sentence about what the program does, in the making's memory. */
static const char *write_summary(struct making *m)
{
    const char *s;

    if (making_chance(m, SHARE_SILENT_SUMMARIES))
        return making_pick(m, "Simple model.|A small module.|Example network.|Test model.|Reference implementation.",
                           '|');
    if (m->n_kinds == 1) {
        s = write_phrase(m, 0);
        return making_format(m,
                             making_pick(m,
                                         "Computes %s.|Applies %s to its input.|A module for %s.|Wraps %s in a "
                                         "module.|Small model: %s.|Model with %s.|"
                                         "This module performs %s.|Implements %s.",
                                         '|'),
                             s);
    }
    s = write_capital(m, write_phrase(m, 0));
    for (int i = 1; i < m->n_kinds; i++)
        s = making_format(m, "%s%s%s", s,
                          i == 1                ? making_pick(m, ", then |, followed by | and ", '|')
                          : i == m->n_kinds - 1 ? " and "
                                                : ", ",
                          write_phrase(m, i));
    return making_format(m, "%s.", s);
}

/* Appends the arguments' documentation in a drawn form. */
static void write_add_arg_docs(struct making *m, const char *indent, struct buf *out)
{
    static const char *const forms[] = {"%s    %s (%s): %s.\n", "%s    %s (%s): %s\n", "%s:param %s: (%s) %s.\n"};
    int form = making_draw(m, 0, 9);

    form = form < 6 ? 0 : form < 9 ? 1 : 2;
    if (!m->n_args)
        return;
    buf_addf(out, "\n");
    if (form < 2)
        buf_addf(out, "%s%s:\n", indent, making_pick(m, "Args|Args|Parameters", '|'));
    for (int i = 0; i < m->n_args; i++)
        buf_addf(out, forms[form], indent, m->arg[i].name,
                 m->arg[i].def ? making_format(m, "%s, optional", m->arg[i].type) : m->arg[i].type,
                 form == 1 ? m->arg[i].doc : write_capital(m, m->arg[i].doc));
}

/* The layers of a chain, a line each. */
static void write_add_layer_list(struct making *m, struct buf *out)
{
    buf_addf(out, "    \"\"\"\n    %s\n",
             making_pick(m, "Layers, in order:|Runs these steps:|A chain of:|Steps:", '|'));
    for (int i = 0; i < m->n_kinds; i++)
        buf_addf(out, "    - %s\n", write_phrase(m, i));
    buf_adds(out, "    \"\"\"\n");
}

/* Appends the class's docstring, if the style has one. */
static void write_add_class_doc(struct making *m, struct buf *out)
{
    if (!m->style.class_doc)
        return;
    if (m->n_kinds > 1 && making_chance(m, 0.3)) {
        write_add_layer_list(m, out);
        return;
    }
    if (!m->style.class_args && making_chance(m, 0.4)) {
        buf_addf(out, "    \"\"\"%s\"\"\"\n\n", write_summary(m));
        return;
    }
    buf_addf(out, "    \"\"\"\n    %s\n", write_summary(m));
    if (m->style.class_args)
        write_add_arg_docs(m, "    ", out);
    buf_adds(out, making_chance(m, 0.5) ? "    \"\"\"\n" : "    \"\"\"\n\n");
}

/* Appends the constructor's docstring, if the style has one. */
static void write_add_init_doc(struct making *m, struct buf *out)
{
    if (!m->style.init_doc || !m->n_args)
        return;
    buf_addf(
        out, "        \"\"\"\n        %s\n",
        making_pick(m, "Sets the layer up.|Initialises the module.|Creates the layers.|Builds the model.", '|'));
    write_add_arg_docs(m, "        ", out);
    buf_adds(out, "        \"\"\"\n");
}

/* Appends forward's docstring, if the style has one. */
static void write_add_forward_doc(struct making *m, struct buf *out)
{
    if (!m->style.forward_doc)
        return;
    buf_addf(out, "        \"\"\"\n        %s\n\n        Args:\n",
             making_pick(m, "Runs the module.|Forward pass.|Computes the result.|Evaluates the model.", '|'));
    for (int i = 0; i < m->n_inputs; i++)
        if (m->input[i].rank >= 0)
            buf_addf(out, "            %s (torch.Tensor): %s of shape %s.\n", m->input[i].name,
                     write_capital(m, m->input[i].what), write_shape_words(m, &m->input[i]));
    buf_addf(out, "\n        Returns:\n            torch.Tensor: %s.\n        \"\"\"\n",
             making_pick(m, "The result|Output tensor|Result of the operation|The output", '|'));
}

/* ---- the reference ---- */

/* Appends text with another name for x. */
static void write_add_renamed(const char *text, size_t n, const char *name, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        bool word = (i && (isalnum((unsigned char)text[i - 1]) || strchr("_.", text[i - 1]))) ||
                    isalnum((unsigned char)text[i + 1]) || text[i + 1] == '_';

        if (text[i] == 'x' && !word)
            buf_adds(out, name);
        else
            buf_addc(out, text[i]);
    }
}

/* Appends the steps of a chain, each of whose values has a name of its own. */
static void write_add_named_steps(struct making *m, struct buf *out)
{
    static const char step[] = "        x = ";
    const char *prefix = making_pick(m, "x|h|y|out|t", '|'), *now = "x", *name;
    int n = 0;

    for (const char *line = m->forward.p, *end; *line; line = end + 1) {
        end = line + strcspn(line, "\n");
        name = strncmp(line, step, sizeof step - 1) ? NULL : making_format(m, "%s%d", prefix, ++n);
        if (name)
            buf_addf(out, "        %s = ", name), line += sizeof step - 1;
        write_add_renamed(line, (size_t)(end - line), now, out);
        buf_addc(out, '\n');
        now = name ? name : now;
    }
    buf_addf(out, "        return %s\n", now);
}

/* Appends the statements of forward. */
static void write_add_body(struct making *m, struct buf *out)
{
    if (m->n_kinds > 1 && m->style.named_steps)
        write_add_named_steps(m, out);
    else if (m->n_kinds > 1)
        buf_addf(out, "%s        return x\n", m->forward.p);
    else if (making_chance(m, 0.8))
        buf_addf(out, "%s        return %s\n", m->before, m->expression);
    else {
        const char *name = making_pick(m, "out|output|result|y", '|');
        buf_addf(out, "%s        %s = %s\n        return %s\n", m->before, name, m->expression, name);
    }
}

/* Appends class Model. */
static void write_add_class(struct making *m, struct buf *out)
{
    buf_adds(out, "class Model(nn.Module):\n");
    write_add_class_doc(m, out);
    if (write_has_init(m)) {
        write_add_init_head(m, out);
        write_add_init_doc(m, out);
        buf_addf(out, "        %s\n%s\n",
                 m->style.newer_super ? "super().__init__()" : "super(Model, self).__init__()", m->init.p);
    }
    write_add_forward_head(m, out);
    write_add_forward_doc(m, out);
    write_add_body(m, out);
}

/* The arguments of the call that makes the input. */
static const char *write_input_shape(struct making *m, const struct making_input *in)
{
    const char *s = "";

    for (int i = 0; i < in->rank; i++)
        s = making_format(m, "%s%s%s", s, i ? ", " : "", in->dim[i]);
    return in->rank == 1 && strstr(in->maker, "(%s)") && strstr(in->maker, "randint") ? making_format(m, "%s,", s)
                                                                                      : s;
}

/* The call that makes the input. */
static const char *write_input_text(struct making *m, const struct making_input *in)
{
    const char *at = strstr(in->maker, "%s");

    if (in->rank < 0 || !at)
        return in->maker;
    return making_format(m, "%.*s%s%s", (int)(at - in->maker), in->maker, write_input_shape(m, in), at + 2);
}

/* Is an input called as a constant is? Then get_inputs() has no variable of that name. */
static bool write_has_clash(const struct making *m)
{
    for (int i = 0; i < m->n_inputs; i++)
        for (int c = 0; c < m->n_constants; c++)
            if (!strcmp(m->input[i].name, m->constant[c].name))
                return true;
    return false;
}

/* Appends get_inputs, in lines of its own or as one list. */
static void write_add_get_inputs(struct making *m, struct buf *out)
{
    bool lines = making_chance(m, m->n_inputs > 1 ? 0.6 : 0.5) && !write_has_clash(m);

    buf_adds(out, "def get_inputs():\n");
    for (int i = 0; i < m->n_inputs && lines; i++)
        if (m->input[i].rank >= 0)
            buf_addf(out, "    %s = %s\n", m->input[i].name, write_input_text(m, &m->input[i]));
    buf_adds(out, "    return [");
    for (int i = 0; i < m->n_inputs; i++)
        buf_addf(out, "%s%s", i ? ", " : "",
                 lines && m->input[i].rank >= 0 ? m->input[i].name : write_input_text(m, &m->input[i]));
    buf_adds(out, "]\n");
}

/* The value of a module's constant, or the name itself if it is none. */
static const char *write_value_of(const struct making *m, const char *name)
{
    for (int i = 0; i < m->n_constants; i++)
        if (!strcmp(m->constant[i].name, name))
            return m->constant[i].value;
    return name;
}

/* Arguments at the end whose value is their default may be left out. */
static int write_said_args(struct making *m)
{
    int n = m->n_args;

    while (n && m->arg[n - 1].def && !strcmp(m->arg[n - 1].def, write_value_of(m, m->arg[n - 1].value)) &&
           making_chance(m, 0.6))
        n--;
    return n;
}

/* Appends get_init_inputs. */
static void write_add_get_init_inputs(struct making *m, struct buf *out)
{
    int n = write_said_args(m);

    buf_adds(out, "def get_init_inputs():\n    return [");
    for (int i = 0; i < n; i++)
        buf_addf(out, "%s%s", i ? ", " : "", m->arg[i].value);
    buf_addf(out, "]%s\n", m->style.comments ? n ? "  # constructor arguments" : "  # nothing to set up" : "");
}

/* True if text has the word, with no letter around it. */
static bool write_mentioned(const char *text, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = text; (p = strstr(p, word)); p += n)
        if ((p == text || (!isalnum((unsigned char)p[-1]) && p[-1] != '_')) && !isalnum((unsigned char)p[n]) &&
            p[n] != '_')
            return true;
    return false;
}

/* Appends the module-level constants that 'used' mentions. */
static void write_add_constants(struct making *m, const char *used, struct buf *out)
{
    if (m->style.comments && m->n_constants)
        buf_addf(out, "# %s\n", making_pick(m, "sizes|problem sizes|configuration|Hyperparameters|shapes", '|'));
    for (int i = 0; i < m->n_constants; i++) {
        const char *name = m->constant[i].name, *value = m->constant[i].value;
        if (!write_mentioned(used, name))
            continue;
        if (i + 1 < m->n_constants && write_mentioned(used, m->constant[i + 1].name) &&
            !write_mentioned(m->constant[i + 1].value, name) && making_chance(m, 0.08)) {
            const char *next = m->constant[i + 1].value;
            if (!strcmp(value, next))
                buf_addf(out, "%s = %s = %s\n", name, m->constant[i + 1].name, value);
            else
                buf_addf(out, "%s, %s = %s, %s\n", name, m->constant[i + 1].name, value, next);
            i++;
        } else {
            buf_addf(out, "%s = %s\n", name, value);
        }
    }
}

/* "write_input_shape = (16, 8)": all but the first size of an input in one constant. */
static void write_fold_shape(struct making *m)
{
    const char *tail = "", *name;
    int rank = m->input[0].rank;

    if (!m->style.shape_tuple || rank < 2 || m->chain || m->n_args > 1 || !m->style.constants ||
        m->kind[0]->form > FORM_LOSS)
        return;
    for (int i = 1; i < m->n_inputs; i++)
        if (m->input[i].rank != rank)
            return;
    for (int i = 1; i < rank; i++)
        tail = making_format(m, "%s%s%s", tail, i > 1 ? ", " : "", write_value_of(m, m->input[0].dim[i]));
    name = making_constant(m, making_pick(m, "input_shape|input_shape|feature_shape|shape", '|'),
                           making_format(m, rank == 2 ? "(%s,)" : "(%s)", tail));
    for (int i = 0; i < m->n_inputs; i++)
        m->input[i].dim[1] = making_format(m, "*%s", name), m->input[i].rank = 2;
}

/* Appends the imports that text needs. */
static void write_add_imports(struct making *m, const char *text, bool program, struct buf *out)
{
    if (strstr(text, "math."))
        buf_adds(out, "import math\n");
    buf_adds(out, "import torch\nimport torch.nn as nn\n");
    if (strstr(text, " F.") || strstr(text, "(F.") || (!program && making_chance(m, 0.12)))
        buf_adds(out, "import torch.nn.functional as F\n");
    if (strstr(text, "Tuple["))
        buf_adds(out, "from typing import Tuple\n");
}

/* Every "from" that does not follow a dot or a letter becomes "to". */
static const char *write_replaced(struct making *m, const char *text, const char *from, const char *to)
{
    struct buf b;
    const char *s, *last = text;

    buf_init(&b, BUF_MAX_TEXT);
    for (const char *p = text; (p = strstr(p, from)); p = last) {
        bool whole = p == text || (p[-1] != '.' && !isalnum((unsigned char)p[-1]) && p[-1] != '_');
        buf_add(&b, last, (size_t)(p - last));
        buf_adds(&b, whole ? to : from);
        last = p + strlen(from);
    }
    buf_adds(&b, last);
    s = arena_strdup(&m->a, b.p);
    buf_free(&b);
    return s;
}

static void write_set_text(struct buf *b, const char *text)
{
    buf_clear(b);
    buf_adds(b, text);
}

/* "torch.nn.functional.relu" for "F.relu", "torch.nn.ReLU" for "nn.ReLU", in some tasks. */
static void write_lengthen(struct making *m)
{
    static const char functional[] = "torch.nn.functional.";

    if (m->style.long_functional) {
        write_set_text(&m->forward, write_replaced(m, m->forward.p, "F.", functional));
        m->expression = write_replaced(m, m->expression, "F.", functional);
        m->before = write_replaced(m, m->before, "F.", functional);
    }
    if (m->style.long_nn)
        write_set_text(&m->init, write_replaced(m, m->init.p, "nn.", "torch.nn."));
}

char *write_task(struct making *m)
{
    struct buf class, inputs, out;

    write_lengthen(m);
    write_order_args(m);
    m->style.empty_init = making_chance(m, 0.75);
    buf_init(&class, BUF_MAX_TEXT), buf_init(&inputs, BUF_MAX_TEXT), buf_init(&out, BUF_MAX_TEXT);
    write_add_class(m, &class);
    write_fold_shape(m);
    write_add_get_inputs(m, &inputs);
    buf_adds(&inputs, making_chance(m, 0.7) ? "\n" : "\n\n");
    write_add_get_init_inputs(m, &inputs);
    write_add_imports(m, making_format(m, "%s%s", class.p, inputs.p), false, &out);
    buf_adds(&out, making_chance(m, 0.7) ? "\n" : "\n\n");
    if (m->style.constants_first) {
        write_add_constants(m, inputs.p, &out);
        buf_addf(&out, "\n\n%s\n", class.p);
    } else {
        buf_addf(&out, "%s\n", class.p);
        write_add_constants(m, inputs.p, &out);
    }
    buf_addf(&out, "\n%s", inputs.p);
    buf_free(&class), buf_free(&inputs);
    return buf_detach(&out);
}

/* ---- the program ---- */

/* Four blanks for each open brace. */
static void write_add_indented(const char *text, struct buf *out)
{
    int depth = 0;

    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        int change = 0, lead = *p == '}';
        for (size_t i = 0; i < n; i++)
            change += p[i] == '{' ? 1 : p[i] == '}' ? -1 : 0;
        if (n)
            buf_addf(out, "%*s%.*s", 4 * (depth - lead), "", (int)n, p);
        buf_addc(out, '\n');
        depth += change;
        p += n + (p[n] == '\n');
    }
}

/* Appends the CUDA source as a Python string. */
static void write_add_source(const struct making *m, struct buf *out)
{
    buf_adds(out, "source = r\"\"\"\n#include <torch/extension.h>\n#include <cuda_runtime.h>\n\n");
    for (int i = 0; i < m->n_functions; i++) {
        write_add_indented(m->function[i].text, out);
        buf_addc(out, '\n');
    }
    buf_adds(out, "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n");
    for (int i = 0; i < m->n_functions; i++)
        buf_addf(out, "    m.def(\"%s_forward\", &%s_forward);\n", m->function[i].name, m->function[i].name);
    buf_adds(out, "}\n\"\"\"\n\nops = load_inline(name=\"ops\", cpp_sources=\"\", cuda_sources=source)\n\n\n");
}

char *write_program(struct making *m)
{
    struct buf class, out;

    buf_init(&class, BUF_MAX_TEXT), buf_init(&out, BUF_MAX_TEXT);
    buf_adds(&class, "class ModelNew(nn.Module):\n");
    if (write_has_init(m)) {
        write_add_init_head(m, &class);
        buf_addf(&class, "        super().__init__()\n%s\n", m->init.p);
    }
    write_add_forward_head(m, &class);
    if (m->n_kinds > 1)
        buf_addf(&class, "%s        return x\n", m->answer.p);
    else
        buf_addf(&class, "        return %s\n", m->call);
    write_add_imports(m, class.p, true, &out);
    buf_adds(&out, "from torch.utils.cpp_extension import load_inline\n\n");
    write_add_source(m, &out);
    buf_adds(&out, class.p);
    buf_free(&class);
    return buf_detach(&out);
}
