/* layer_axis.c - reductions, rows and scans along one axis, and sums over all axes of space. */
#include "synth/surface/layer_parts.h"

#include <string.h>

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

static int axis_draw(struct making *m)
{
    int dim = m->rank == 1 ? 0 : making_chance(m, 0.6) ? 1 : making_draw(m, 0, m->rank - 1);

    return m->chain ? (m->rank > 2 ? 1 : m->rank - 1) : dim;
}

static const char *axis_text(struct making *m, int dim, bool may_be_negative)
{
    return layer_number(m, may_be_negative && !m->chain && making_chance(m, 0.25) ? dim - m->rank : dim);
}

/* Takes a dimension out of the shape, or makes it 1. */
static void axis_drop(struct making *m, int dim, bool keep)
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

/* Binds the axis as an attribute, an argument, or a number. */
static struct layer_bound axis_bind(struct making *m, struct spelled *s, int dim)
{
    const char *name = making_pick(m, "dim|dim|dim|axis|reduce_dim", '|');

    return layer_bind(m, s, s->init ? "dim" : name, "int", axis_text(m, dim, true),
                      making_chance(m, 0.7) ? "1" : "-1", "axis to work along");
}

/* Draws whether keepdim is written. */
static void axis_set_keep(struct making *m, const struct kind *k, const struct layer_bound *b, bool keep, bool *any)
{
    *any = keep || making_chance(m, 0.15);
    making_set(m, "keep", *any ? keep ? ", keepdim=True" : ", keepdim=False" : "");
    making_set(m, "dim", b->seen);
    making_set(m, "T", k->flags & KIND_INT ? "int64_t" : "float");
    making_set(m, "type", k->flags & KIND_INT ? ".dtype(torch::kInt64)" : "");
}

bool layer_add_reduce(struct making *m, const struct kind *k)
{
    struct spelled s;
    struct layer_bound b;
    bool keep = making_chance(m, m->chain ? 0.7 : 0.35), any;
    int dim;

    if (m->rank < 0)
        layer_draw_input(m, layer_draw_rank(m));
    dim = axis_draw(m);
    if (m->d[dim] < 2 || (m->rank == 1 && m->chain))
        return false;
    layer_flush(m);
    s = layer_draw_spelling(m, k);
    b = axis_bind(m, &s, dim);
    axis_set_keep(m, k, &b, keep, &any);
    layer_say_reference(m, making_expand(m, s.call));
    making_set(m, "body", k->code);
    making_function(m, k->name, reduce_text);
    layer_say_call(m, making_expand(m, making_format(m, "ops.$f($x, $dim, %s)", keep ? "True" : "False")));
    axis_drop(m, dim, keep);
    return true;
}

/* A second attribute of rows: the norm's eps. */
static void axis_add_row_eps(struct making *m, const struct kind *k, const struct spelled *s)
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

/* Adds a boolean input of the same shape. */
static void axis_add_mask(struct making *m)
{
    layer_copy_input(
        m, 0, "mask",
        making_pick(m, "torch.rand(%s) > 0.5|torch.randint(0, 2, (%s)).bool()|torch.rand(%s) < 0.7", '|'),
        "boolean mask of the same shape");
}

bool layer_add_row(struct making *m, const struct kind *k)
{
    bool masked = k->flags & KIND_MASK;
    struct spelled s;
    struct layer_bound b;
    int dim;

    if (m->rank < 0)
        layer_draw_input(m, k->flags & KIND_MASK && making_chance(m, 0.7) ? 2 : layer_draw_rank(m));
    if (masked)
        axis_add_mask(m);
    dim = axis_draw(m);
    if (m->d[dim] < 2)
        return false;
    layer_flush(m);
    s = layer_draw_spelling(m, k);
    b = axis_bind(m, &s, dim);
    making_set(m, "dim", s.init ? b.init : b.seen);
    axis_add_row_eps(m, k, &s);
    if (s.init)
        layer_add_init(m, making_format(m, "self.%s = %s", s.module, making_expand(m, s.init)));
    layer_say_reference(m, making_expand(m, s.call));
    making_set(m, "dim", b.seen);
    if (k->attr[1].name)
        making_set(m, "eps", "eps");
    making_set(m, "body", making_expand(m, k->code));
    making_function(m, k->name, masked ? masked_text : row_text);
    layer_say_call(m, making_expand(m, masked ? "ops.$f($x, mask, $dim)" : "ops.$f($x, $dim$more)"));
    return true;
}

static const char spatial_text[] =
    "__global__ void $k_kernel(const float* x, float* out, int rows, int n) {\nint i = blockIdx.x * blockDim.x + "
    "threadIdx.x;\nif (i < rows) {\nfloat sum = 0.0f;\nfor (int j = 0; j < n;) {\nfloat part = 0.0f;\n"
    "for (int end = min(j + 64, n); j < end; j++) {\npart += x[i * n + j];\n}\nsum += part;\n}\n"
    "out[i] = sum$over;\n}\n}\n\n"
    "torch::Tensor $f(torch::Tensor x) {\nauto out = torch::empty({$sizes}, x.options());\nint rows = "
    "out.numel();\n"
    "int n = x.numel() / rows;\n"
    "$k_kernel<<<(rows + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), rows, n);\nreturn "
    "out;\n}\n";

/* "torch.mean(x, dim=(2, 3), keepdim=True)", or a pooling to one element where that is the same. */
static const char *axis_spatial_expression(struct making *m, const struct kind *k, int from, bool keep)
{
    static const char *const axes[] = {NULL, NULL, NULL, "2", "2, 3", "2, 3, 4"};
    const char *op = k->flags & KIND_ROWSUM ? "sum" : "mean", *dims = axes[m->rank];
    int rank = m->rank;

    if (from == 1)
        dims = making_format(m, "1, %s", dims);
    if (from == 2 && keep && !(k->flags & KIND_ROWSUM) && making_chance(m, 0.5)) {
        const char *to = rank == 4   ? making_pick(m, "(1, 1)|1", '|')
                         : rank == 5 ? making_pick(m, "(1, 1, 1)|1", '|')
                                     : "1";
        if (making_chance(m, 0.4))
            return making_format(m, "F.adaptive_avg_pool%dd($x, %s)", rank - 2, to);
        const char *name = making_pick(m, "global_avg_pool|avg_pool|gap", '|');
        if (!strstr(m->init.p, making_format(m, "self.%s ", name))) {
            layer_add_init(m, making_format(m, "self.%s = nn.AdaptiveAvgPool%dd(%s)", name, rank - 2, to));
            return making_format(m, "self.%s($x)", name);
        }
    }
    if (from == 2 && rank == 3)
        return making_format(m, "torch.%s($x, dim=2%s)", op, keep ? ", keepdim=True" : "");
    return making_format(
        m, making_pick(m, "torch.%s($x, dim=[%s]%s)|torch.%s($x, dim=(%s)%s)|torch.%s($x, dim=[%s]%s)", '|'), op,
        dims, keep ? ", keepdim=True" : "");
}

bool layer_add_spatial(struct making *m, const struct kind *k)
{
    static const char *const ones[] = {NULL, NULL, NULL, ", 1", ", 1, 1", ", 1, 1, 1"};
    bool keep = making_chance(m, 0.7);
    int from = k->rank, rank;

    if (m->rank < 0)
        layer_draw_image(m, making_draw(m, 1, 3), making_draw(m, 1, 6));
    if (m->rank < 3 || m->d[2] < 2)
        return false;
    layer_flush(m);
    rank = m->rank;
    layer_say_reference(m, making_expand(m, axis_spatial_expression(m, k, from, keep)));
    making_set(m, "over", k->flags & KIND_ROWSUM ? "" : " / n");
    making_set(m, "sizes",
               making_format(m, "%s%s%s", from == 1 ? "x.size(0)" : "x.size(0), x.size(1)",
                             keep && from == 1 ? ", 1" : "", keep ? ones[rank] : ""));
    making_function(m, k->name, spatial_text);
    layer_say_call(m, making_expand(m, "ops.$f($x)"));
    m->rank = keep ? rank : from;
    for (int i = from; i < m->rank; i++)
        m->d[i] = 1;
    if (from == 1)
        m->channels = NULL;
    return true;
}
