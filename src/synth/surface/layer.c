/* layer.c - see layer.h. Reading order: layer_add at the end; a function for each form. */
#include "synth/surface/layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "synth/surface/window.h"

/* ---- inputs ---- */

static const char *const dim_names[6][8] = {
    {0},
    {"n", "size", "length", "num_elements", "dim", "features"},
    {"batch_size dim", "batch_size features", "rows cols", "N D", "batch_size hidden_size",
     "num_samples num_features", "batch_size n", "M N"},
    {"batch_size seq_len dim", "batch_size dim1 dim2", "B T C", "batch_size channels length",
     "batch_size rows cols", "batch_size seq_length hidden_dim"},
    {"batch_size channels height width", "N C H W", "batch_size features dim1 dim2",
     "batch_size num_heads seq_len head_dim", "B C H W"},
    {"batch_size channels depth height width", "N C D H W", "batch_size features dim1 dim2 dim3"}};

static const char *layer_draw_names(struct making *m, int rank)
{
    int n = 0;

    while (n < 8 && dim_names[rank][n])
        n++;
    return dim_names[rank][making_draw(m, 0, n - 1)];
}

static const char *layer_word(struct making *m, const char *words, int i)
{
    while (i--)
        words = strchr(words, ' ') + 1;
    return arena_strndup(&m->a, words, strcspn(words, " "));
}

static int layer_draw_size(struct making *m, int hi)
{
    int v = making_draw(m, hi > 2 ? 2 : 1, hi);

    if (making_chance(m, 0.35))
        while (v & (v - 1))
            v &= v - 1;
    return v;
}

static const char *layer_number(struct making *m, int v)
{
    return making_format(m, "%d", v);
}

static const char *layer_shape_constant(struct making *m, const char *name, int v)
{
    return m->style.literal_dims ? layer_number(m, v) : making_constant(m, name, layer_number(m, v));
}

static const char *layer_draw_maker(struct making *m)
{
    static const char *const makers[] = {"torch.rand(%s)", "torch.randn(%s)", "torch.randn(%s)",
                                         "torch.rand(%s) * 2 - 1", "torch.randn(%s) * 0.5"};

    return makers[m->style.maker];
}

static struct making_input *layer_add_input(struct making *m, const char *name, const char *maker, const char *what)
{
    struct making_input *in = &m->input[m->n_inputs++];

    *in = (struct making_input){.name = name, .maker = maker, .what = what};
    return in;
}

static const char *layer_draw_input_name(struct making *m)
{
    return making_pick(m, "x|x|x|x|x|x|input|inputs|input_tensor|tensor|inp|data", '|');
}

/* The current value becomes an input of these sizes; words: names of its axes. */
static struct making_input *layer_make_input(struct making *m, const char *words, int rank, const int d[],
                                             const char *maker)
{
    struct making_input *in = layer_add_input(m, layer_draw_input_name(m), maker, "input tensor");

    in->rank = m->rank = rank;
    for (int i = 0; i < rank; i++) {
        in->dim[i] = layer_shape_constant(m, layer_word(m, words, i), d[i]);
        m->d[i] = d[i];
    }
    making_set(m, "x", in->name);
    return in;
}

static void layer_draw_plain_input(struct making *m, int rank)
{
    static const int most[6] = {1, 3000, 60, 24, 10, 6};
    int d[5];

    for (int i = 0; i < rank; i++)
        d[i] = layer_draw_size(m, most[rank]);
    layer_make_input(m, layer_draw_names(m, rank), rank, d, layer_draw_maker(m));
}

static int layer_draw_rank(struct making *m)
{
    static const int ranks[] = {2, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4, 1, 5};

    return ranks[making_draw(m, 0, 12)];
}

static struct making_input *layer_copy_input(struct making *m, int of, const char *name, const char *maker,
                                             const char *what)
{
    struct making_input *in = layer_add_input(m, name, maker, what);
    const struct making_input *from = &m->input[of];

    in->rank = from->rank;
    memcpy(in->dim, from->dim, sizeof in->dim);
    return in;
}

/* ---- attributes ---- */

struct spelled {
    const char *init, *call; /* init NULL: no module */
    const char *module;      /* its name */
};

static const char *layer_module_name(struct making *m, const struct kind *k)
{
    static const char *const general[] = {"layer", "op", "module"};
    const char *base = k->name;

    m->n_modules++;
    if (k->form == FORM_LOSS || k->form == FORM_ROWLOSS)
        base = making_pick(m, "loss_fn|criterion|loss", '|');
    else if (k->form == FORM_MAP && making_chance(m, 0.4))
        base = making_pick(m, "act|activation|act_fn", '|');
    else if (k->form == FORM_NORM && making_chance(m, 0.4))
        base = "norm";
    else if (!m->chain && making_chance(m, 0.1))
        base = general[making_draw(m, 0, 2)];
    return m->n_modules > 1 && (m->chain || making_chance(m, 0.5)) &&
                   strstr(m->init.p, making_format(m, "self.%s ", base))
               ? making_format(m, "%s%d", base, m->n_modules)
               : base;
}

static struct spelled layer_draw_spelling(struct making *m, const struct kind *k)
{
    struct spelled s = {0};
    int n = 0;
    const char *text, *colon;

    while (n < KIND_SPELLINGS && k->spell[n])
        n++;
    text = k->spell[making_draw(m, 0, n - 1)];
    if (!strncmp(text, "nn.", 3) && (colon = strstr(text, " : "))) {
        s.init = arena_strndup(&m->a, text, (size_t)(colon - text));
        s.call = colon + 3;
        s.module = layer_module_name(m, k);
        making_set(m, "m", s.module);
    } else {
        s.call = text;
    }
    return s;
}

static void layer_add_init_line(struct making *m, const char *text)
{
    buf_addf(&m->init, "        %s\n", text);
}

/* Where an attribute stands: what __init__ says ("i"), and what forward sees. */
struct layer_bound {
    const char *init, *seen;
};

static struct layer_bound layer_bind(struct making *m, const struct spelled *s, const char *name, const char *type,
                                     const char *value, const char *def, const char *doc)
{
    struct layer_bound b = {value, value};
    double p = s->init ? 0.6 : 0.55;

    if (making_chance(m, p))
        b.init = making_arg(m, name, type, value, making_chance(m, 0.5) ? def : NULL, doc);
    if (s->init) {
        b.seen = making_format(m, "self.%s.%s", s->module, name);
    } else if (b.init != value) {
        b.seen = making_format(m, "self.%s", b.init);
        layer_add_init_line(m, making_format(m, "self.%s = %s", b.init, b.init));
    }
    return b;
}

static bool layer_mentions(struct making *m, const struct spelled *s, const char *name)
{
    const char *text = s->init ? s->init : s->call;

    return strstr(text, making_format(m, "$%s", name)) || strstr(text, making_format(m, "${%s}", name));
}

/* ---- lines ---- */

static void layer_add_kind(struct making *m, const struct kind *k)
{
    if (m->n_kinds < MAKING_KINDS)
        m->kind[m->n_kinds++] = k;
}

static void layer_say_reference(struct making *m, const char *expression)
{
    m->expression = expression;
    buf_addf(&m->forward, "        x = %s\n", expression);
}

static void layer_say_call(struct making *m, const char *call)
{
    m->call = call;
    buf_addf(&m->answer, "        x = %s\n", call);
}

/* ---- maps ---- */

void layer_flush(struct making *m)
{
    static const char text[] =
        "__global__ void $k_kernel(const float* x, float* out, int n%s) {\nint i = blockIdx.x * blockDim.x + "
        "threadIdx.x;\n"
        "if (i < n) {\nfloat v = x[i];\n%sout[i] = v;\n}\n}\n\n"
        "torch::Tensor $f(torch::Tensor x%s) {\nauto out = torch::empty_like(x);\nint n = x.numel();\n"
        "$k_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n%s);\nreturn out;\n}\n";
    const char *name;

    if (!m->map.n)
        return;
    name = making_function(m, m->map.name,
                           making_format(m, text, m->map.params.p, m->map.code.p, m->map.hosts.p, m->map.args.p));
    layer_say_call(m, making_format(m, "ops.%s_forward(%s%s)", name, m->map.x, m->map.call.p));
    buf_clear(&m->map.code), buf_clear(&m->map.params), buf_clear(&m->map.hosts), buf_clear(&m->map.args),
        buf_clear(&m->map.call);
    m->map.n = 0;
}

/* A parameter of the fused kernel: a name that is not taken. */
static const char *layer_map_parameter(struct making *m, const char *name)
{
    const char *s = name;

    for (int i = 2; strstr(m->map.params.p, making_format(m, "float %s", s)); i++)
        s = making_format(m, "%s%d", name, i);
    buf_addf(&m->map.params, ", float %s", s);
    buf_addf(&m->map.hosts, ", float %s", s);
    buf_addf(&m->map.args, ", %s", s);
    return s;
}

static void layer_map_name(struct making *m, const struct kind *k)
{
    if (!m->map.n)
        m->map.x = making_expand(m, "$x");
    m->map.name = !m->map.n      ? k->name
                  : m->map.n < 3 ? making_format(m, "%s_%s", m->map.name, k->name)
                                 : m->map.name;
    m->map.n++;
}

static void layer_add_attr(struct making *m, const struct kind *k, int i, const struct spelled *s)
{
    const struct kind_attr *a = &k->attr[i];
    const char *name = making_pick(m, a->name, '|'), *value = making_pick(m, a->values, ' ');
    const char *def = making_chance(m, 0.5) ? value : making_pick(m, a->values, ' ');
    const char *key = strchr(a->name, '|') ? "0" : a->name;
    struct layer_bound b = layer_mentions(m, s, key) ? layer_bind(m, s, name, a->type, value, def, a->doc)
                                         : (struct layer_bound){NULL, making_format(m, "self.%s.%s", s->module, name)};

    if (b.init)
        making_set(m, key, s->init ? b.init : b.seen);
    buf_addf(&m->map.call, ", %s", b.seen);
    making_set(m, making_format(m, "c_%s", key), layer_map_parameter(m, name));
}

/* In code "$name" is the kernel's variable. */
static void layer_set_code_names(struct making *m, const struct kind *k)
{
    for (int i = 0; i < KIND_ATTRS && k->attr[i].name; i++) {
        const char *key = strchr(k->attr[i].name, '|') ? "0" : k->attr[i].name;
        making_set(m, key, making_expand(m, making_format(m, "$c_%s", key)));
    }
}

static bool layer_add_map(struct making *m, const struct kind *k)
{
    struct spelled s;

    if (m->rank < 0)
        layer_draw_plain_input(m, layer_draw_rank(m));
    s = layer_draw_spelling(m, k);
    layer_map_name(m, k);
    for (int i = 0; i < KIND_ATTRS && k->attr[i].name; i++)
        layer_add_attr(m, k, i, &s);
    if (s.init)
        layer_add_init_line(m, making_format(m, "self.%s = %s", s.module, making_expand(m, s.init)));
    layer_say_reference(m, making_expand(m, s.call));
    layer_set_code_names(m, k);
    buf_adds(&m->map.code, making_expand(m, k->code));
    return true;
}

/* ---- one axis ---- */

#define ROW_HEAD                                                                 \
    "int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < outer * inner) {\n" \
    "int base = i / inner * n * inner + i % inner;\nconst float* row = x + base;\n"
#define ROW_SIZES "int n = x.size(dim);\nint inner = x.stride(dim);\nint outer = x.numel() / (n * inner);\n"
#define ROW_LAUNCH "$k_kernel<<<(outer * inner + 255) / 256, 256>>>"

static const char reduce_text[] =
    "__global__ void $k_kernel(const float* x, $T* out, int outer, int n, int inner) {\n" ROW_HEAD "$body}\n}\n\n"
    "torch::Tensor $f(torch::Tensor x, int dim, bool keepdim) {\n" ROW_SIZES
    "auto out = torch::empty((keepdim ? x.narrow(dim, 0, 1) : x.select(dim, 0)).sizes(), "
    "x.options()$type);\n" ROW_LAUNCH
    "(x.data_ptr<float>(), out.data_ptr<$T>(), outer, n, inner);\nreturn out;\n}\n";
static const char row_text[] =
    "__global__ void $k_kernel(const float* x, float* out, int outer, int n, int inner$cparams) {\n" ROW_HEAD
    "float* y = out + base;\n$body}\n}\n\n"
    "torch::Tensor $f(torch::Tensor x, int dim$cparams) {\n" ROW_SIZES
    "auto out = torch::empty_like(x);\n" ROW_LAUNCH
    "(x.data_ptr<float>(), out.data_ptr<float>(), outer, n, inner$cargs);\nreturn out;\n}\n";
static const char masked_text[] =
    "__global__ void $k_kernel(const float* x, const bool* mask, float* out, int outer, int n, int inner) "
    "{\n" ROW_HEAD "const bool* keep = mask + base;\nfloat* y = out + base;\n$body}\n}\n\n"
    "torch::Tensor $f(torch::Tensor x, torch::Tensor mask, int dim) {\n" ROW_SIZES
    "auto out = torch::empty_like(x);\n" ROW_LAUNCH
    "(x.data_ptr<float>(), mask.data_ptr<bool>(), out.data_ptr<float>(), outer, n, inner);\nreturn out;\n}\n";

static int layer_draw_axis(struct making *m)
{
    int dim = m->rank == 1 ? 0 : making_chance(m, 0.6) ? 1 : making_draw(m, 0, m->rank - 1);

    return m->chain ? (m->rank > 2 ? 1 : m->rank - 1) : dim;
}

static const char *layer_axis_text(struct making *m, int dim, bool may_be_negative)
{
    return layer_number(m, may_be_negative && !m->chain && making_chance(m, 0.25) ? dim - m->rank : dim);
}

static void layer_drop_axis(struct making *m, int dim, bool keep)
{
    if (dim < 2)
        m->channels = NULL;
    if (keep) {
        m->d[dim] = 1;
        return;
    }
    memmove(m->d + dim, m->d + dim + 1, sizeof *m->d * (size_t)(m->rank - dim - 1));
    m->rank--;
}

static struct layer_bound layer_bind_axis(struct making *m, struct spelled *s, int dim)
{
    const char *name = making_pick(m, "dim|dim|dim|axis|reduce_dim", '|');

    return layer_bind(m, s, s->init ? "dim" : name, "int", layer_axis_text(m, dim, true),
                      making_chance(m, 0.7) ? "1" : "-1", "axis to work along");
}

static void layer_set_keep(struct making *m, const struct kind *k, const struct layer_bound *b, bool keep, bool *any)
{
    *any = keep || making_chance(m, 0.15);
    making_set(m, "keep", *any ? keep ? ", keepdim=True" : ", keepdim=False" : "");
    making_set(m, "dim", b->seen);
    making_set(m, "T", k->flags & KIND_INT ? "int64_t" : "float");
    making_set(m, "type", k->flags & KIND_INT ? ".dtype(torch::kInt64)" : "");
}

static bool layer_add_reduce(struct making *m, const struct kind *k)
{
    struct spelled s;
    struct layer_bound b;
    bool keep = making_chance(m, m->chain ? 0.7 : 0.35), any;
    int dim;

    if (m->rank < 0)
        layer_draw_plain_input(m, layer_draw_rank(m));
    dim = layer_draw_axis(m);
    if (m->d[dim] < 2 || (m->rank == 1 && m->chain))
        return false;
    layer_flush(m);
    s = layer_draw_spelling(m, k);
    b = layer_bind_axis(m, &s, dim);
    layer_set_keep(m, k, &b, keep, &any);
    layer_say_reference(m, making_expand(m, s.call));
    making_set(m, "body", k->code);
    making_function(m, k->name, reduce_text);
    layer_say_call(m, making_expand(m, making_format(m, "ops.$f($x, $dim, %s)", keep ? "True" : "False")));
    layer_drop_axis(m, dim, keep);
    return true;
}

/* A second attribute of rows: the norm's eps. */
static void layer_add_row_eps(struct making *m, const struct kind *k, const struct spelled *s)
{
    const struct kind_attr *a = &k->attr[1];
    struct layer_bound b;

    making_set(m, "cparams", ""), making_set(m, "cargs", ""), making_set(m, "more", "");
    if (!a->name)
        return;
    b = layer_bind(m, s, a->name, a->type, making_pick(m, a->values, ' '), making_pick(m, a->values, ' '), a->doc);
    making_set(m, "cparams", ", float eps"), making_set(m, "cargs", ", eps");
    making_set(m, "more", making_format(m, ", %s", b.seen));
    making_set(m, "eps", b.seen);
}

static void layer_add_mask(struct making *m)
{
    layer_copy_input(m, 0, "mask",
                     making_pick(m, "torch.rand(%s) > 0.5|torch.randint(0, 2, (%s)).bool()|torch.rand(%s) < 0.7", '|'),
                     "boolean mask of the same shape");
}

static bool layer_add_row(struct making *m, const struct kind *k)
{
    bool masked = k->flags & KIND_MASK;
    struct spelled s;
    struct layer_bound b;
    int dim;

    if (m->rank < 0)
        layer_draw_plain_input(m, k->flags & KIND_MASK && making_chance(m, 0.7) ? 2 : layer_draw_rank(m));
    if (masked)
        layer_add_mask(m);
    dim = layer_draw_axis(m);
    if (m->d[dim] < 2)
        return false;
    layer_flush(m);
    s = layer_draw_spelling(m, k);
    b = layer_bind_axis(m, &s, dim);
    making_set(m, "dim", s.init ? b.init : b.seen);
    layer_add_row_eps(m, k, &s);
    if (s.init)
        layer_add_init_line(m, making_format(m, "self.%s = %s", s.module, making_expand(m, s.init)));
    layer_say_reference(m, making_expand(m, s.call));
    making_set(m, "dim", b.seen);
    if (k->attr[1].name)
        making_set(m, "eps", "eps");
    making_set(m, "body", making_expand(m, k->code));
    making_function(m, k->name, masked ? masked_text : row_text);
    layer_say_call(m, making_expand(m, masked ? "ops.$f($x, mask, $dim)" : "ops.$f($x, $dim$more)"));
    return true;
}

/* ---- losses ---- */

#define BLOCK_END                                                                                              \
    "sums[threadIdx.x] = acc;\n__syncthreads();\nfor (int s = 128; s > 0; s /= 2) {\nif (threadIdx.x < s) {\n" \
    "sums[threadIdx.x] += sums[threadIdx.x + s];\n}\n__syncthreads();\n}\nif (threadIdx.x == 0) {\nout[0] = "  \
    "sums[0]$over;\n}\n}\n\n"
#define SCALAR_OUT "auto out = torch::empty({}, x.options());\n"

static const char loss_text[] =
    "__global__ void $k_kernel(const float* x, const float* y, float* out, int n, int m$cparams) {\n__shared__ "
    "float sums[256];\n"
    "float acc = 0.0f;\nfor (int i = threadIdx.x; i < n; i += 256) {\nfloat a = x[i];\nfloat b = "
    "y[$at];\n$body}\n" BLOCK_END "torch::Tensor $f(torch::Tensor x, torch::Tensor y$cparams) {\n" SCALAR_OUT
    "int n = x.numel();\nint m = $m_is;\n"
    "$k_kernel<<<1, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), out.data_ptr<float>(), n, m$cargs);\nreturn "
    "out;\n}\n";
static const char rowloss_text[] =
    "__global__ void $k_kernel(const float* x, const $T* t$uparam, float* out, int n, int m$cparams) {\n__shared__ "
    "float sums[256];\n"
    "float acc = 0.0f;\nfor (int i = threadIdx.x; i < n; i += 256) {\n$body}\n" BLOCK_END
    "torch::Tensor $f(torch::Tensor x, torch::Tensor t$uhost$cparams) {\n" SCALAR_OUT
    "int n = x.size(0);\nint m = x.size(1);\n"
    "$k_kernel<<<1, 256>>>(x.data_ptr<float>(), t.data_ptr<$T>()$uarg, out.data_ptr<float>(), n, m$cargs);\nreturn "
    "out;\n}\n";

/* "$red", "$redm": how the reduction is said; the kernel's last step follows. */
static void layer_set_reduction(struct making *m, const struct kind *k, const struct spelled *s)
{
    bool open = strstr(s->init ? s->init : s->call, "$red") != NULL, sum = open && making_chance(m, 0.25);
    bool said = sum || making_chance(m, 0.3);
    const char *how = sum ? "reduction='sum'" : "reduction='mean'";

    making_set(m, "redm", said ? how : "");
    making_set(m, "red", said ? making_format(m, ", %s", how) : "");
    making_set(m, "over", k->flags & KIND_ROWSUM ? " / m" : sum ? "" : " / n");
    if (sum)
        making_set(m, "over", "");
}

static void layer_set_loss_attr(struct making *m, const struct kind *k, const struct spelled *s)
{
    const struct kind_attr *a = &k->attr[0];
    struct layer_bound b;

    making_set(m, "cparams", ""), making_set(m, "cargs", ""), making_set(m, "more", "");
    if (!a->name)
        return;
    b = layer_bind(m, s, a->name, a->type, making_pick(m, a->values, ' '), making_pick(m, a->values, ' '), a->doc);
    making_set(m, "cparams", making_format(m, ", float %s", a->name)),
        making_set(m, "cargs", making_format(m, ", %s", a->name));
    making_set(m, "more", making_format(m, ", %s", b.seen));
    making_set(m, a->name, s->init ? b.init : b.seen);
}

static void layer_draw_pair(struct making *m, const struct kind *k)
{
    static const char *const names[] = {"predictions targets", "pred target",   "output target",  "input target",
                                        "predicted actual",    "y_pred y_true", "outputs labels", "x y"};
    const char *both = names[making_draw(m, 0, 7)], *target = layer_draw_maker(m), *source = layer_draw_maker(m);
    int rank = k->flags & KIND_DISTRIBUTION || making_chance(m, 0.7) ? 2 : layer_draw_rank(m);
    struct making_input *in;

    if (k->flags & KIND_DISTRIBUTION)
        source = target = making_pick(m,
                                      "torch.rand(%s).softmax(dim=-1)|torch.softmax(torch.randn(%s), "
                                      "dim=-1)|F.softmax(torch.randn(%s), dim=-1)",
                                      '|');
    else if (k->flags & KIND_SIGNS)
        target = making_pick(m,
                             "torch.randint(0, 2, (%s)).float() * 2 - 1|torch.sign(torch.randn(%s))|2.0 * "
                             "torch.randint(0, 2, (%s)) - 1.0",
                             '|');
    else if (k->flags & KIND_BINARY)
        target = making_pick(m, "torch.rand(%s)|torch.randint(0, 2, (%s)).float()", '|');
    layer_draw_plain_input(m, rank);
    m->input[0].name = layer_word(m, both, 0), m->input[0].maker = source, m->input[0].what = "predictions";
    in = layer_copy_input(m, 0, layer_word(m, both, 1), target, "targets");
    if (k->flags & KIND_SIGNS && rank == 2 && making_chance(m, 0.5)) {
        in->rank = 1;
        in->dim[0] = in->dim[1];
    }
    making_set(m, "x", m->input[0].name), making_set(m, "t", in->name);
}

static bool layer_add_loss(struct making *m, const struct kind *k)
{
    struct spelled s;

    if (m->chain)
        return false;
    layer_draw_pair(m, k);
    s = layer_draw_spelling(m, k);
    layer_set_loss_attr(m, k, &s);
    layer_set_reduction(m, k, &s);
    if (s.init)
        layer_add_init_line(m, making_format(m, "self.%s = %s", s.module, making_expand(m, s.init)));
    layer_say_reference(m, making_expand(m, s.call));
    if (k->attr[0].name)
        making_set(m, k->attr[0].name, k->attr[0].name);
    making_set(m, "at", k->flags & KIND_SIGNS ? "i % m" : "i");
    making_set(m, "m_is", k->flags & KIND_SIGNS ? "y.numel()" : "x.size(0)");
    making_set(m, "body", making_expand(m, k->code));
    making_function(m, k->name, loss_text);
    layer_say_call(m, making_expand(m, "ops.$f($x, $t$more)"));
    return true;
}

static void layer_draw_rows(struct making *m, const struct kind *k)
{
    static const char *const pairs[] = {"predictions targets", "logits labels", "logits targets", "output target",
                                        "scores classes"};
    const char *both = k->flags & KIND_CLASSES ? pairs[making_draw(m, 0, 4)]
                       : k->rank == 3          ? "anchor positive negative"
                                               : making_pick(m, "x1 x2|a b|predictions targets|u v", '|');
    int d[2] = {layer_draw_size(m, 40), making_draw(m, 3, 30)};
    const char *words = k->flags & KIND_CLASSES
                            ? making_pick(m, "batch_size num_classes|N C|num_samples n_classes", '|')
                            : making_pick(m, "batch_size dim|batch_size embedding_dim|N D", '|');
    struct making_input *in;

    layer_make_input(m, words, 2, d, layer_draw_maker(m));
    m->input[0].name = layer_word(m, both, 0),
    m->input[0].what = k->flags & KIND_CLASSES ? "scores of the classes" : "first operand";
    if (k->flags & KIND_CLASSES) {
        in = layer_add_input(m, layer_word(m, both, 1),
                             making_format(m, "torch.randint(0, %s, (%%s,))", m->input[0].dim[1]), "class of each row");
        in->rank = 1, in->dim[0] = m->input[0].dim[0];
    } else {
        for (int i = 1; i < (k->rank == 3 ? 3 : 2); i++)
            layer_copy_input(m, 0, layer_word(m, both, i), layer_draw_maker(m), "another operand");
    }
    making_set(m, "x", m->input[0].name), making_set(m, "t", m->input[1].name);
    making_set(m, "u", k->rank == 3 ? m->input[2].name : "");
}

static bool layer_add_rowloss(struct making *m, const struct kind *k)
{
    struct spelled s;
    bool three = k->rank == 3;

    if (m->chain)
        return false;
    layer_draw_rows(m, k);
    s = layer_draw_spelling(m, k);
    layer_set_loss_attr(m, k, &s);
    layer_set_reduction(m, k, &s);
    if (s.init)
        layer_add_init_line(m, making_format(m, "self.%s = %s", s.module, making_expand(m, s.init)));
    layer_say_reference(m, making_expand(m, s.call));
    if (k->attr[0].name)
        making_set(m, k->attr[0].name, k->attr[0].name);
    making_set(m, "T", k->flags & KIND_CLASSES ? "int64_t" : "float");
    making_set(m, "uparam", three ? ", const float* u" : ""),
        making_set(m, "uhost", three ? ", torch::Tensor u" : "");
    making_set(m, "uarg", three ? ", u.data_ptr<float>()" : "");
    making_set(m, "body", making_expand(m, k->code));
    making_function(m, k->name, rowloss_text);
    layer_say_call(m, making_expand(m, three ? "ops.$f($x, $t, $u$more)" : "ops.$f($x, $t$more)"));
    return true;
}

/* ---- norms ---- */

static void layer_draw_channels(struct making *m, int rank)
{
    static const char *const words[] = {NULL,
                                        NULL,
                                        "batch_size num_features",
                                        "batch_size num_features length",
                                        "batch_size num_features height width",
                                        "batch_size num_features depth height width"};
    static const int most[6] = {0, 0, 24, 20, 9, 5};
    const char *names = making_chance(m, 0.5) ? words[rank] : layer_draw_names(m, rank);
    int d[5] = {making_draw(m, 2, 6), 2 * making_draw(m, 1, 6)};

    for (int i = 2; i < rank; i++)
        d[i] = layer_draw_size(m, most[rank]);
    layer_make_input(m, names, rank, d, layer_draw_maker(m));
    m->channels = NULL;
}

static int layer_draw_groups(struct making *m, int channels)
{
    int g;

    do
        g = making_draw(m, 1, channels > 8 ? 8 : channels);
    while (channels % g);
    return g;
}

/* "num_features" of the constructor, or the number. */
static const char *layer_channels_arg(struct making *m)
{
    const char *value = m->n_inputs && m->input[0].rank > 1 && !m->chain ? m->input[0].dim[1]
        : layer_number(m, m->d[1]);

    if (m->channels)
        return m->channels;
    return making_chance(m, 0.85)
               ? making_arg(m, making_pick(m, "num_features|num_features|num_channels|channels", '|'), "int", value,
                            NULL, "number of channels")
               : layer_number(m, m->d[1]);
}

static const char *layer_tail_of(struct making *m, int from)
{
    const char *s = "";

    for (int i = from; i < m->rank; i++)
        s = making_format(m, "%s%s%s", s, i > from ? ", " : "",
                          m->chain ? layer_number(m, m->d[i]) : m->input[0].dim[i]);
    return from == m->rank - 1 && making_chance(m, 0.6)
               ? s
               : making_format(m, "(%s%s)", s, from == m->rank - 1 ? "," : "");
}

/* normalized_shape: the last axis or all but the first. */
static const char *layer_draw_normalized(struct making *m)
{
    int from = m->rank > 2 && making_chance(m, 0.5) && !m->chain ? 1 : m->rank - 1;
    const char *value = layer_tail_of(m, from);

    return making_chance(m, 0.8)
               ? making_arg(m, making_pick(m, "normalized_shape|normalized_shape|norm_shape|hidden_size", '|'),
                            *value == '(' ? "tuple" : "int", value, NULL, "shape that is normalised")
               : value;
}

static bool layer_norm_shape(struct making *m, const struct kind *k)
{
    bool layer = !strcmp(k->name, "layer_norm"), batch = !strcmp(k->name, "batch_norm"),
         instance = !strcmp(k->name, "instance_norm");

    if (m->rank < 0 && k->rank < 0)
        layer_draw_plain_input(m, layer_draw_rank(m));
    else if (m->rank < 0 && layer)
        layer_draw_plain_input(m, making_draw(m, 2, 4));
    else if (m->rank < 0)
        layer_draw_channels(m, instance ? making_draw(m, 3, 5) : batch ? making_draw(m, 2, 5) : making_draw(m, 2, 4));
    if (k->rank < 0)
        return !m->chain;
    if (m->rank < 2 || m->d[1] < 2 || (instance && (m->rank < 3 || m->d[2] < 2)) || (batch && m->d[0] < 2))
        return false;
    return !layer || m->d[m->rank - 1] > 1;
}

static void layer_set_norm(struct making *m, const struct kind *k, struct spelled *s)
{
    static const char *const dims[] = {"", "", "1d", "1d", "2d", "3d"};
    const struct kind_attr *eps = !strcmp(k->name, "group_norm") ? &k->attr[1] : &k->attr[0];

    making_set(m, "bd", dims[m->rank]), making_set(m, "sd", dims[m->rank]);
    if (strstr(k->spell[0], "$shape"))
        making_set(m, "shape", layer_draw_normalized(m));
    if (strstr(k->spell[0], "$channels"))
        making_set(m, "channels", layer_channels_arg(m));
    if (strstr(k->spell[0], "$num_groups")) {
        const char *g = layer_number(m, layer_draw_groups(m, m->d[1]));
        making_set(m, "num_groups",
                   making_chance(m, 0.85) ? making_arg(m, "num_groups", "int", making_constant(m, "num_groups", g),
                                                       NULL, k->attr[0].doc)
                                          : g);
    }
    if (eps->name && layer_mentions(m, s, "eps"))
        making_set(m, "eps", layer_bind(m, s, "eps", "float", making_pick(m, eps->values, ' '), "1e-5", eps->doc).init);
}

static bool layer_add_norm(struct making *m, const struct kind *k)
{
    struct spelled s;

    if (!layer_norm_shape(m, k))
        return false;
    layer_flush(m);
    s = layer_draw_spelling(m, k);
    layer_set_norm(m, k, &s);
    if (s.init)
        layer_add_init_line(m, making_format(m, "self.%s = %s", s.module, making_expand(m, s.init)));
    layer_say_reference(m, making_expand(m, s.call));
    making_function(m, k->fn ? k->fn : k->name, k->code);
    layer_say_call(m, making_expand(m, k->call));
    return true;
}

/* ---- windows ---- */

struct window {
    int kernel[3], stride[3], padding[3], dilation[3], extra[3], groups;
    bool tuple, full;
};

static const char *layer_axes_value(struct making *m, const int v[3], int axes, bool tuple)
{
    const char *s = "";
    bool same = true;

    for (int i = 1; i < axes; i++)
        same = same && v[i] == v[0];
    if (same && !tuple)
        return layer_number(m, v[0]);
    for (int i = 0; i < axes; i++)
        s = making_format(m, "%s%s%d", s, i ? ", " : "", v[i]);
    return making_format(m, axes == 1 ? "(%s,)" : "(%s)", s);
}

static int layer_out_size(int n, const struct window *w, int i, bool transposed)
{
    int reach = w->dilation[i] * (w->kernel[i] - 1);

    return transposed ? (n - 1) * w->stride[i] - 2 * w->padding[i] + reach + w->extra[i] + 1
                      : (n + 2 * w->padding[i] - reach - 1) / w->stride[i] + 1;
}

static void layer_draw_numbers(struct making *m, int axes, int v[3], int lo, int hi, bool same, double plain)
{
    bool first = making_chance(m, plain);

    for (int i = 0; i < axes; i++)
        v[i] = first ? lo : same && i ? v[0] : making_draw(m, lo, hi);
}

static bool layer_window_fits(const struct making *m, const struct window *w, int axes, bool transposed, bool pool)
{
    for (int i = 0; i < axes; i++) {
        int n = m->d[2 + i];
        if (pool && 2 * w->padding[i] > w->kernel[i])
            return false;
        if (!transposed && n + 2 * w->padding[i] < w->dilation[i] * (w->kernel[i] - 1) + 1)
            return false;
        if (w->extra[i] && w->extra[i] >= (w->stride[i] > w->dilation[i] ? w->stride[i] : w->dilation[i]))
            return false;
        if (layer_out_size(n, w, i, transposed) < 1 || layer_out_size(n, w, i, transposed) > 40)
            return false;
    }
    return true;
}

static void layer_draw_window(struct making *m, int axes, struct window *w, bool transposed, bool pool)
{
    bool plain = m->chain && making_chance(m, 0.6);
    bool same_k = making_chance(m, pool ? 0.9 : 0.6), same = same_k || making_chance(m, 0.5);
    int most = axes == 3 ? 3 : 5;

    w->tuple = making_chance(m, pool ? 0.05 : 0.1);
    layer_draw_numbers(m, axes, w->kernel, pool ? 2 : 1, most, same_k, 0);
    layer_draw_numbers(m, axes, w->stride, 1, 3, same, plain ? 1 : 0.4);
    layer_draw_numbers(m, axes, w->padding, 0, 2, same, plain ? 1 : 0.4);
    layer_draw_numbers(m, axes, w->dilation, 1, 3, same, m->chain ? 1 : 0.6);
    layer_draw_numbers(m, axes, w->extra, 0, 1, same, !transposed ? 1 : 0.6);
}

/* In the order of their arguments. */
struct layer_part_state {
    const char *name, *doc, *def;
    const int *v;
    const char *arg; /* the constructor's word for it; NULL: name */
};

static bool layer_is_default(const struct layer_part_state *p, int axes)
{
    for (int i = 0; i < axes; i++)
        if (p->v[i] != atoi(p->def))
            return false;
    return true;
}

static const char *layer_part_type(struct making *m, const char *value)
{
    return *value == '(' ? making_pick(m, "tuple|tuple|tuple|Tuple", '|') : "int";
}

/* ", stride=stride" or "": an argument, a number, or nothing where it is what PyTorch assumes. */
static const char *layer_say_part(struct making *m, const struct layer_part_state *p, int axes, bool tuple,
                                  bool positional, bool forced)
{
    const char *value = layer_axes_value(m, p->v, axes, tuple), *said = value, *name = p->arg ? p->arg : p->name;
    bool plain = layer_is_default(p, axes);

    if (plain && !forced && making_chance(m, m->chain ? 0.95 : 0.35))
        return "";
    if (making_chance(m, 0.9)) {
        const char *def =
            *value == '(' ? layer_axes_value(m, (int[3]){atoi(p->def), atoi(p->def), atoi(p->def)}, axes, true)
                : p->def;
        said = making_arg(m, name, layer_part_type(m, value), making_constant(m, name, value),
                          strcmp(p->def, "-1") && making_chance(m, 0.8) && !m->chain ? def : NULL, p->doc);
    }
    return making_format(m, positional ? ", %s" : ", %s=%s", positional ? said : p->name, said);
}

static void layer_draw_image(struct making *m, int axes, int channels)
{
    static const char *const words[4][3] = {{0},
                                            {"length", "sequence_length", "L"},
                                            {"height width", "H W", "height width"},
                                            {"depth height width", "D H W", "depth height width"}};
    static const int most[4] = {0, 32, 12, 7}, least[4] = {0, 6, 4, 3};
    int d[5] = {making_draw(m, 1, 4), channels};
    bool square = making_chance(m, 0.5);

    for (int i = 0; i < axes; i++)
        d[2 + i] = square && i ? d[2] : making_draw(m, least[axes], most[axes]);
    layer_make_input(m,
                     making_format(m, "%s %s %s", making_pick(m, "batch_size|batch_size|batch_size|N|batch", '|'),
                                   making_pick(m, "in_channels|in_channels|channels", '|'),
                                   words[axes][making_draw(m, 0, 2)]),
                     axes + 2, d, layer_draw_maker(m));
}

static const char *layer_conv_channels(struct making *m, const struct kind *k, int out, const char **in,
                                       const char **groups, struct window *w)
{
    bool depthwise = k->flags & KIND_DEPTHWISE;
    const char *given = m->n_kinds ? NULL : m->input[0].dim[1];

    *in = m->channels ? m->channels
                      : making_arg(m, "in_channels", "int", given ? given : layer_number(m, m->d[1]), NULL,
                                   "channels of the input");
    *groups = "";
    if (depthwise) {
        w->groups = m->d[1];
        *groups = making_format(m, ", groups=%s", *in);
        if (out == m->d[1] && making_chance(m, 0.7))
            return *in;
    }
    return making_arg(
        m, m->channels ? making_pick(m, "out_channels|hidden_channels|mid_channels", '|') : "out_channels", "int",
        making_constant(m, "out_channels", layer_number(m, out)), NULL, "channels of the result");
}

/* The window's numbers behind the channels: "kernel_size, stride=stride". */
static const char *layer_conv_arguments(struct making *m, const struct kind *k, const struct window *w, int axes)
{
    const struct layer_part_state parts[] = {{"stride", "stride of the window", "1", w->stride, NULL},
                                             {"padding", "zeros added at each side", "0", w->padding, NULL},
                                             {"output_padding", "size added to one side of the result", "0", w->extra,
                                              NULL},
                                             {"dilation", "spacing of the kernel's elements", "1", w->dilation, NULL}};
    const struct layer_part_state kernel = {"kernel_size", "size of the window", "-1", w->kernel, NULL};
    bool pointwise = k->flags & KIND_POINTWISE;
    const char *s = pointwise ? making_pick(m, ", kernel_size=1|, 1", '|')
                              : layer_say_part(m, &kernel, axes, w->tuple, making_chance(m, 0.7), false);

    for (int i = 0; i < 4; i++)
        if ((i != 2 || k->flags & KIND_TRANSPOSED) && !(pointwise && i != 0 && layer_is_default(&parts[i], axes)))
            s = making_format(m, "%s%s", s, layer_say_part(m, &parts[i], axes, w->tuple, false, false));
    return s;
}

static const char *layer_say_groups(struct making *m, const struct window *w, const char *groups)
{
    const struct layer_part_state p = {"groups", "blocks of channels that are connected", "1", &w->groups, NULL};

    return *groups ? groups : layer_say_part(m, &p, 1, false, false, false);
}

static const char *layer_say_bias(struct making *m, bool bias)
{
    const char *value = bias ? "True" : "False";

    if (bias && making_chance(m, m->chain ? 0.95 : 0.4))
        return "";
    if (making_chance(m, 0.85))
        return making_format(m, ", bias=%s",
                             making_arg(m, "bias", "bool", value,
                                        making_chance(m, 0.6) ? value : making_pick(m, "True|False", '|'),
                                        "whether a bias is added"));
    return making_format(m, ", bias=%s", value);
}

static const char *layer_conv_module(struct making *m, bool transposed, int axes)
{
    const char *choices =
        transposed ? "conv_transpose|conv_transpose%dd|deconv|upconv|conv" : "conv|conv%dd|conv|convolution|conv1";
    const char *base = making_format(m, making_pick(m, choices, '|'), axes);

    m->n_modules++;
    return strstr(m->init.p, making_format(m, "self.%s ", base)) ? making_format(m, "%s%d", base, m->n_modules)
                                                                 : base;
}

static int layer_draw_out_channels(struct making *m, const struct kind *k, const struct window *w)
{
    if (k->flags & KIND_DEPTHWISE)
        return m->d[1] * (making_chance(m, 0.8) ? 1 : 2);
    return w->groups * making_draw(m, 1, w->groups > 2 ? 2 : 8 / w->groups) * (m->chain && w->groups == 1 ? 2 : 1);
}

static bool layer_draw_conv(struct making *m, const struct kind *k, struct window *w)
{
    bool transposed = k->flags & KIND_TRANSPOSED;

    for (int tries = 0; tries < 60; tries++) {
        layer_draw_window(m, k->rank, w, transposed, false);
        w->groups = 1;
        if (k->flags & KIND_POINTWISE)
            for (int i = 0; i < 3; i++)
                w->kernel[i] = w->stride[i] = w->dilation[i] = 1, w->padding[i] = 0;
        if (!(k->flags & (KIND_DEPTHWISE | KIND_POINTWISE)) && !m->chain && making_chance(m, 0.3))
            w->groups = layer_draw_groups(m, m->d[1]);
        if (layer_window_fits(m, w, k->rank, transposed, false))
            return true;
    }
    return false;
}

static void layer_conv_shape(struct making *m, const struct window *w, int axes, int out, bool transposed)
{
    m->d[1] = out;
    for (int i = 0; i < axes; i++)
        m->d[2 + i] = layer_out_size(m->d[2 + i], w, i, transposed);
}

static void layer_conv_lines(struct making *m, const struct kind *k, const struct window *w, int out)
{
    bool transposed = k->flags & KIND_TRANSPOSED, bias = making_chance(m, m->chain ? 0.9 : 0.45);
    const char *in, *groups, *outs = layer_conv_channels(m, k, out, &in, &groups, (struct window *)(uintptr_t)w);
    const char *name = layer_conv_module(m, transposed, k->rank), *window = layer_conv_arguments(m, k, w, k->rank);
    const char *more = layer_say_groups(m, w, groups), *with = layer_say_bias(m, bias), *fn;
    bool keywords = making_chance(m, 0.1);
    struct buf text;

    layer_add_init_line(m, making_format(m,
                                         keywords ? "self.%s = nn.Conv%s%dd(in_channels=%s, out_channels=%s%s%s%s)"
                                                  : "self.%s = nn.Conv%s%dd(%s, %s%s%s%s)",
                                         name, transposed ? "Transpose" : "", k->rank, in, outs,
                                         keywords && strncmp(window, ", kernel_size=", 14)
                                             ? making_format(m, ", kernel_size=%s", window + 2)
                                             : window,
                                         more, with));
    making_set(m, "m", name);
    layer_say_reference(m, making_expand(m, "self.$m($x)"));
    buf_init(&text, BUF_MAX_TEXT);
    window_conv(&text, "$k", k->rank, transposed);
    fn = making_function(m, making_format(m, transposed ? "conv_transpose%dd" : "conv%dd", k->rank), text.p);
    buf_free(&text);
    layer_say_call(
        m,
        making_format(
            m,
            "ops.%s_forward(%s, self.%s.weight, self.%s.bias, self.%s.stride, self.%s.padding, self.%s.dilation%s)",
            fn, making_expand(m, "$x"), name, name, name, name, name,
            transposed ? making_format(m, ", self.%s.output_padding, self.%s.groups", name, name) : ""));
    m->channels = outs;
}

static bool layer_add_conv(struct making *m, const struct kind *k)
{
    struct window w = {.groups = 1};
    int out;

    if (m->rank < 0)
        layer_draw_image(m, k->rank,
                         k->flags & KIND_DEPTHWISE || making_chance(m, 0.4) ? 2 * making_draw(m, 1, 3)
                                                                            : making_draw(m, 1, 6));
    if (m->rank != k->rank + 2 || !layer_draw_conv(m, k, &w))
        return false;
    layer_flush(m);
    if (k->flags & KIND_DEPTHWISE)
        w.groups = m->d[1];
    out = layer_draw_out_channels(m, k, &w);
    layer_conv_lines(m, k, &w, out);
    layer_conv_shape(m, &w, k->rank, out, k->flags & KIND_TRANSPOSED);
    return true;
}

/* ---- pooling ---- */

static const char *layer_pool_arguments(struct making *m, const struct window *w, int axes, bool max, bool strided)
{
    const struct layer_part_state parts[] = {
        {"kernel_size", "size of the window", "-1", w->kernel, m->chain ? "pool_kernel_size" : NULL},
        {"stride", "stride of the window", "-1", w->stride, m->chain ? "pool_stride" : NULL},
        {"padding", "zeros added at each side", "0", w->padding, m->chain ? "pool_padding" : NULL},
        {"dilation", "spacing of the window's elements", "1", w->dilation, NULL}};
    bool positional = making_chance(m, 0.5);
    const char *s = "";

    for (int i = 0; i < (max ? 4 : 3); i++)
        if (i != 1 || strided)
            s = making_format(m, "%s%s", s,
                              layer_say_part(m, &parts[i], axes, w->tuple, positional && i == 0, w->tuple));
    return s;
}

/* What nn keeps: AvgPool1d keeps tuples. */
static const char *layer_pool_call(struct making *m, const char *fn, const char *name, int axes, bool max, bool tuples)
{
    static const char *const attrs[] = {"kernel_size", "stride", "padding", "dilation"};
    const char *s = making_format(m, "ops.%s_forward(%s", fn, making_expand(m, "$x"));

    for (int i = 0; i < (max ? 4 : 3); i++)
        s = making_format(m, "%s, self.%s.%s%s", s, name, attrs[i], !max && axes == 1 && !tuples ? "[0]" : "");
    return making_format(m, "%s)", s);
}

static bool layer_draw_pool(struct making *m, int axes, struct window *w, bool *strided)
{
    *strided = making_chance(m, 0.65);
    for (int tries = 0; tries < 60; tries++) {
        layer_draw_window(m, axes, w, false, true);
        if (!*strided)
            memcpy(w->stride, w->kernel, sizeof w->stride);
        if (layer_window_fits(m, w, axes, false, true))
            return true;
    }
    return false;
}

/* All of a pooling's numbers are numbers, or all are tuples: its host takes one kind. */
static void layer_settle_tuples(struct window *w, int axes)
{
    const int *v[] = {w->kernel, w->stride, w->padding, w->dilation};

    for (int k = 0; k < 4; k++)
        for (int i = 1; i < axes; i++)
            w->tuple |= v[k][i] != v[k][0];
    w->tuple = axes > 1 && w->tuple;
}

static bool layer_add_pool(struct making *m, const struct kind *k)
{
    struct window w = {.groups = 1};
    bool max = !strncmp(k->name, "max", 3), strided;
    const char *name, *arguments, *fn;
    struct buf text;

    if (m->rank < 0)
        layer_draw_image(m, k->rank, making_draw(m, 1, 6));
    if (m->rank != k->rank + 2 || !layer_draw_pool(m, k->rank, &w, &strided))
        return false;
    if (!max)
        w.dilation[0] = w.dilation[1] = w.dilation[2] = 1;
    if (!layer_window_fits(m, &w, k->rank, false, true))
        return false;
    layer_flush(m);
    layer_settle_tuples(&w, k->rank);
    name = making_format(
        m, making_pick(m, max ? "pool|max_pool|maxpool|maxpool%dd" : "pool|avg_pool|avgpool|avg_pool%dd", '|'),
        k->rank);
    m->n_modules++;
    if (strstr(m->init.p, making_format(m, "self.%s ", name)))
        name = making_format(m, "%s%d", name, m->n_modules);
    arguments = layer_pool_arguments(m, &w, k->rank, max, strided);
    layer_add_init_line(
        m, making_format(m, "self.%s = nn.%sPool%dd(%s)", name, max ? "Max" : "Avg", k->rank, arguments + 2));
    making_set(m, "m", name);
    layer_say_reference(m, making_expand(m, "self.$m($x)"));
    buf_init(&text, BUF_MAX_TEXT);
    window_pool(&text, "$k", k->rank, max, w.tuple);
    fn = making_function(m, k->name, text.p);
    buf_free(&text);
    layer_say_call(m, layer_pool_call(m, fn, name, k->rank, max, w.tuple));
    layer_conv_shape(m, &w, k->rank, m->d[1], false);
    return true;
}

/* ---- linear, parameters, means over space ---- */

static const char linear_text[] =
    "__global__ void $k_kernel(const float* x, const float* w, const float* b, float* out, int n, int in, int "
    "cols) {\n"
    "int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < n) {\nconst float* row = x + i / cols * in;\nconst "
    "float* weight = w + i % cols * in;\n"
    "float acc = b ? b[i % cols] : 0.0f;\nfor (int k = 0; k < in; k++) {\nacc += row[k] * weight[k];\n}\nout[i] = "
    "acc;\n}\n}\n\n"
    "torch::Tensor $f(torch::Tensor x, torch::Tensor w, torch::optional<torch::Tensor> b) {\nauto out = "
    "torch::empty({x.size(0), w.size(0)}, x.options());\n"
    "int n = out.numel();\n$k_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), w.data_ptr<float>(), b ? "
    "b->data_ptr<float>() : nullptr, "
    "out.data_ptr<float>(), n, w.size(1), w.size(0));\nreturn out;\n}\n";

static bool layer_add_linear(struct making *m, const struct kind *k)
{
    const char *name = making_pick(m, "linear|gemm|fc|linear|matmul|proj", '|'), *in, *out;
    int d[2] = {making_draw(m, 2, 12), making_draw(m, 3, 32)}, n = 2 * making_draw(m, 2, 14);

    if (m->rank < 0)
        layer_make_input(m, making_pick(m, "batch_size in_features|batch_size input_size|batch_size input_dim", '|'), 2,
                         d, layer_draw_maker(m));
    if (m->rank != 2)
        return false;
    layer_flush(m);
    m->n_modules++;
    if (strstr(m->init.p, making_format(m, "self.%s ", name)))
        name = making_format(m, "%s%d", name, m->n_modules);
    in = m->channels
             ? m->channels
             : making_arg(m, making_pick(m, "in_features|in_features|input_size|input_dim", '|'), "int",
                          m->n_kinds ? layer_number(m, m->d[1]) : m->input[0].dim[1], NULL, "features of the input");
    out = making_arg(m, making_pick(m, "out_features|out_features|hidden_size|output_size", '|'), "int",
                     making_constant(m, "out_features", layer_number(m, n)), NULL, "features of the result");
    layer_add_init_line(m, making_format(m, "self.%s = nn.Linear(%s, %s%s)", name, in, out,
                                         making_chance(m, 0.9) ? "" : ", bias=False"));
    making_set(m, "m", name);
    layer_say_reference(m, making_expand(m, "self.$m($x)"));
    making_function(m, k->name, linear_text);
    layer_say_call(m, making_expand(m, "ops.$f($x, self.$m.weight, self.$m.bias)"));
    m->channels = out, m->d[1] = n;
    return true;
}

/* A parameter of shape (C,) or (C, 1, 1) joins the map: its index follows from the value's own sizes. */
static bool layer_add_param(struct making *m, const struct kind *k)
{
    const char *name = making_pick(m, k->say, '|'), *shape, *base = name, *ones = "";
    bool first = !strstr(m->map.params.p, "int inner");

    if (m->rank < 2 || m->d[1] < 2 || !m->channels)
        return false;
    for (int i = 2; strstr(m->init.p, making_format(m, "self.%s ", name)) ||
                    strstr(m->map.params.p, making_format(m, "* %s", name));
         i++)
        name = making_format(m, "%s%d", base, i);
    for (int i = 2; i < m->rank; i++)
        ones = making_format(m, "%s, 1", ones);
    shape = making_arg(m, making_format(m, "%s_shape", name), "tuple",
                       making_constant(m, making_format(m, "%s_shape", name),
                                       making_format(m, "(%d,%s)", m->d[1], *ones ? ones + 1 : "")),
                       NULL, "shape of the parameter");
    making_set(m, "p", name);
    layer_add_init_line(
        m, making_expand(m, making_format(m, "self.$p = nn.Parameter(%s(%s)%s)",
                                          making_pick(m, "torch.randn|torch.randn|torch.rand|torch.ones", '|'),
                                          shape, making_chance(m, 0.15) ? " * 0.02" : "")));
    layer_say_reference(m, making_expand(m, k->spell[0]));
    layer_map_name(m, k);
    buf_addf(&m->map.params, ", const float* %s%s", name, first ? ", int channels, int inner" : "");
    buf_addf(&m->map.hosts, ", torch::Tensor %s", name);
    buf_addf(&m->map.args, ", %s.data_ptr<float>()%s", name, first ? ", x.size(1), x.stride(1)" : "");
    buf_addf(&m->map.call, ", self.%s", name);
    buf_adds(&m->map.code, making_expand(m, k->code));
    return true;
}

static const char spatial_text[] =
    "__global__ void $k_kernel(const float* x, float* out, int rows, int n) {\nint i = blockIdx.x * blockDim.x + "
    "threadIdx.x;\nif (i < rows) {\n"
    "float sum = 0.0f;\nfor (int j = 0; j < n; j++) {\nsum += x[i * n + j];\n}\nout[i] = sum / n;\n}\n}\n\n"
    "torch::Tensor $f(torch::Tensor x) {\nint rows = x.size(0) * x.size(1);\nint n = x.numel() / rows;\n"
    "auto out = torch::empty({x.size(0), x.size(1)$ones}, x.options());\n"
    "$k_kernel<<<(rows + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), rows, n);\nreturn "
    "out;\n}\n";

static bool layer_add_spatial(struct making *m, const struct kind *k)
{
    static const char *const axes[] = {NULL, NULL, NULL, "2", "2, 3", "2, 3, 4"}, *const ones[] = {
                                                                                      NULL,  NULL,     NULL,
                                                                                      ", 1", ", 1, 1", ", 1, 1, 1"};
    bool keep = making_chance(m, 0.7), pool;
    int rank;

    if (m->rank < 0)
        layer_draw_image(m, making_draw(m, 1, 3), making_draw(m, 1, 6));
    if (m->rank < 3 || m->d[2] < 2)
        return false;
    layer_flush(m);
    rank = m->rank, pool = keep && making_chance(m, 0.5);
    layer_say_reference(m, making_expand(m, pool ? making_format(m, "F.adaptive_avg_pool%dd($x, %s)", rank - 2,
                                                                 rank == 4 && making_chance(m, 0.5) ? "(1, 1)" : "1")
                                                 : making_format(m,
                                                                 making_chance(m, 0.5) ? "torch.mean($x, dim=[%s]%s)"
                                                                 : rank == 3           ? "$x.mean(dim=%s%s)"
                                                                                       : "$x.mean(dim=(%s)%s)",
                                                                 axes[rank], keep ? ", keepdim=True" : "")));
    making_set(m, "ones", keep ? ones[rank] : "");
    making_function(m, k->name, spatial_text);
    layer_say_call(m, making_expand(m, "ops.$f($x)"));
    m->rank = keep ? rank : 2;
    for (int i = 2; i < m->rank; i++)
        m->d[i] = 1;
    return true;
}

/* ---- products of two inputs ---- */

static void layer_operand(struct making *m, const char *name, int rank, const char *const dims[], const char *maker)
{
    struct making_input *in = layer_add_input(m, name, maker, "operand");

    in->rank = rank;
    for (int i = 0; i < rank; i++)
        in->dim[i] = dims[i];
}

#define DIMS(...)         \
    (const char *const[]) \
    {                     \
        __VA_ARGS__       \
    }

static void layer_draw_operands(struct making *m, int shape, const char *A, const char *B, const char *C)
{
    bool plain = making_chance(m, 0.7);
    const char *M = layer_shape_constant(m, plain ? "M" : "m", layer_draw_size(m, 40)),
               *K = layer_shape_constant(m, plain ? "K" : "k",
                                         layer_draw_size(m, shape == 0 && making_chance(m, 0.2) ? 300 : 40));
    const char *N =
                   layer_shape_constant(m, plain ? "N" : "n",
                                        layer_draw_size(m, shape == 0 && making_chance(m, 0.2) ? 6 : 40)),
               *b = "1", *t = "2";
    const char *maker = layer_draw_maker(m), *upper = "torch.triu(torch.randn(%s))",
               *lower = "torch.tril(torch.randn(%s))";

    if (shape >= 9 && shape != 12 && shape != 13) {
        b = layer_shape_constant(m, making_pick(m, "batch_size|batch|b", '|'), making_draw(m, 1, 5));
        t = layer_shape_constant(m, making_pick(m, "num_heads|heads|groups", '|'), making_draw(m, 1, 4));
    }
    switch (shape) {
    case 1: layer_operand(m, A, 2, DIMS(K, M), maker), layer_operand(m, B, 2, DIMS(K, N), maker); break;
    case 2: layer_operand(m, A, 2, DIMS(M, K), maker), layer_operand(m, B, 2, DIMS(N, K), maker); break;
    case 3: layer_operand(m, A, 2, DIMS(K, M), maker), layer_operand(m, B, 2, DIMS(N, K), maker); break;
    case 4: layer_operand(m, A, 2, DIMS(M, K), maker), layer_operand(m, B, 2, DIMS(K, "1"), maker); break;
    case 5: layer_operand(m, A, 2, DIMS(N, N), maker), layer_operand(m, B, 2, DIMS(N, N), maker); break;
    case 6: layer_operand(m, A, 2, DIMS(N, N), upper), layer_operand(m, B, 2, DIMS(N, N), upper); break;
    case 7: layer_operand(m, A, 2, DIMS(N, N), lower), layer_operand(m, B, 2, DIMS(N, N), lower); break;
    case 8: layer_operand(m, A, 1, DIMS(N), maker), layer_operand(m, B, 2, DIMS(N, M), maker); break;
    case 9: layer_operand(m, A, 3, DIMS(b, M, K), maker), layer_operand(m, B, 3, DIMS(b, K, N), maker); break;
    case 10: layer_operand(m, A, 3, DIMS(b, M, K), maker), layer_operand(m, B, 2, DIMS(K, N), maker); break;
    case 11: layer_operand(m, A, 4, DIMS(b, t, M, K), maker), layer_operand(m, B, 2, DIMS(K, N), maker); break;
    case 12:
    case 13: layer_operand(m, A, 2, DIMS(M, N), maker); break;
    case 14:
        layer_operand(m, A, 4, DIMS(b, t, M, K), maker), layer_operand(m, B, 4, DIMS(b, t, M, K), maker),
            layer_operand(m, C, 4, DIMS(b, t, M, K), maker);
        break;
    default: layer_operand(m, A, 2, DIMS(M, K), maker), layer_operand(m, B, 2, DIMS(K, N), maker);
    }
}

/* A number that forward takes beside the matrix. */
static void layer_add_scalar(struct making *m)
{
    const char *value = making_pick(m, "2.5 0.5 3.14 1.5 -2.0 4.0", ' '),
               *name = making_pick(m, "s alpha scalar c", ' ');
    struct layer_bound b;

    if (making_chance(m, 0.6)) {
        layer_add_input(m, name, making_constant(m, name, value), "scalar")->rank = -1;
        making_set(m, "s", name);
    } else {
        b = layer_bind(m, &(struct spelled){0}, name, "float", value, value, "factor");
        making_set(m, "s", b.seen);
    }
}

static bool layer_add_matmul(struct making *m, const struct kind *k)
{
    const char *names = k->rank == 14
                            ? making_pick(m, "Q K V|q k v|query key value", '|')
                            : making_pick(m, "A B C|A B C|a b c|x y z|left right more|mat1 mat2 mat3", '|');
    const char *A = layer_word(m, names, 0), *B = layer_word(m, names, 1), *C = layer_word(m, names, 2);
    int n = 0;

    if (m->chain || m->rank >= 0)
        return false;
    layer_draw_operands(m, k->rank, A, B, C);
    making_set(m, "A", A), making_set(m, "B", B), making_set(m, "C", C);
    if (k->rank == 12)
        layer_add_scalar(m);
    while (n < KIND_SPELLINGS && k->spell[n])
        n++;
    layer_say_reference(m, making_expand(m, k->spell[making_draw(m, 0, n - 1)]));
    making_function(m, k->fn ? k->fn : k->name, k->code);
    layer_say_call(m, making_expand(m, k->call));
    m->rank = 2;
    return true;
}

typedef bool (*adder)(struct making *m, const struct kind *k);

bool layer_add(struct making *m, const struct kind *k)
{
    static const adder by_form[N_FORMS] = {
        [FORM_MAP] = layer_add_map,        [FORM_REDUCE] = layer_add_reduce, [FORM_ROW] = layer_add_row,
        [FORM_SCAN] = layer_add_row,       [FORM_LOSS] = layer_add_loss,     [FORM_ROWLOSS] = layer_add_rowloss,
        [FORM_NORM] = layer_add_norm,      [FORM_POOL] = layer_add_pool,     [FORM_CONV] = layer_add_conv,
        [FORM_LINEAR] = layer_add_linear,  [FORM_MATMUL] = layer_add_matmul, [FORM_PARAM] = layer_add_param,
        [FORM_SPATIAL] = layer_add_spatial};

    if (!by_form[k->form](m, k))
        return false;
    layer_add_kind(m, k);
    if (m->chain)
        making_set(m, "x", "x");
    return true;
}
