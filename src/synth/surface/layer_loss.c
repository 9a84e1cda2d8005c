/* layer_loss.c - losses of pairs and of rows. */
#include "synth/surface/layer_parts.h"

#include <string.h>

/* ---- losses ---- */

#define BLOCK_END                                                                                                      \
    "sums[threadIdx.x] = acc;\n__syncthreads();\nfor (int s = 128; s > 0; s /= 2) {\nif (threadIdx.x < s) {\n"         \
    "sums[threadIdx.x] += sums[threadIdx.x + s];\n}\n__syncthreads();\n}\nif (threadIdx.x == 0) {\natomicAdd("         \
    "out, sums[0]$over);\n}\n}\n\n"
#define BLOCK_EACH "for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {\n"
#define SCALAR_OUT "auto out = torch::zeros({}, x.options());\n"
#define BLOCKS     "int blocks = std::min((n + 255) / 256, 1024);\n"

static const char loss_text[] =
    "__global__ void $k_kernel(const float* x, const float* y, float* out, int n, int m$cparams) {\n__shared__ "
    "float sums[256];\n"
    "float acc = 0.0f;\n" BLOCK_EACH "float a = x[i];\nfloat b = "
    "y[$at];\n$body}\n" BLOCK_END "torch::Tensor $f(torch::Tensor x, torch::Tensor y$cparams) {\n" SCALAR_OUT
    "int n = x.numel();\nint m = $m_is;\n" BLOCKS
    "$k_kernel<<<blocks, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), out.data_ptr<float>(), n, m$cargs);\nreturn "
    "out;\n}\n";
static const char rowloss_text[] =
    "__global__ void $k_kernel(const float* x, const $T* t$uparam, float* out, int n, int m$cparams) {\n__shared__ "
    "float sums[256];\n"
    "float acc = 0.0f;\n" BLOCK_EACH "$body}\n" BLOCK_END
    "torch::Tensor $f(torch::Tensor x, torch::Tensor t$uhost$cparams) {\n" SCALAR_OUT
    "int n = x.size(0);\nint m = x.size(1);\n" BLOCKS
    "$k_kernel<<<blocks, 256>>>(x.data_ptr<float>(), t.data_ptr<$T>()$uarg, out.data_ptr<float>(), n, "
    "m$cargs);\nreturn "
    "out;\n}\n";

/* "$red", "$redm": how the reduction is said; the kernel's last step follows. */
static void loss_set_reduction(struct making *m, const struct kind *k, const struct spelled *s)
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

/* Binds the attribute of a loss, if its kind has one. */
static void loss_set_loss_attr(struct making *m, const struct kind *k, const struct spelled *s)
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

/* Draws prediction and target of a loss of elements. */
static void loss_draw_pair(struct making *m, const struct kind *k)
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
    layer_draw_input(m, rank);
    m->input[0].name = layer_word(m, both, 0), m->input[0].maker = source, m->input[0].what = "predictions";
    in = layer_copy_input(m, 0, layer_word(m, both, 1), target, "targets");
    if (k->flags & KIND_SIGNS && rank == 2 && making_chance(m, 0.5)) {
        in->rank = 1;
        in->dim[0] = in->dim[1];
    }
    making_set(m, "x", m->input[0].name), making_set(m, "t", in->name);
}

bool layer_add_loss(struct making *m, const struct kind *k)
{
    struct spelled s;

    if (m->chain)
        return false;
    loss_draw_pair(m, k);
    s = layer_draw_spelling(m, k);
    loss_set_loss_attr(m, k, &s);
    loss_set_reduction(m, k, &s);
    if (s.init)
        layer_add_init(m, making_format(m, "self.%s = %s", s.module, making_expand(m, s.init)));
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

/* Draws the operands of a loss of rows: logits with labels, pairs or triplets. */
static void loss_draw_rows(struct making *m, const struct kind *k)
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

bool layer_add_rowloss(struct making *m, const struct kind *k)
{
    struct spelled s;
    bool three = k->rank == 3;

    if (m->chain)
        return false;
    loss_draw_rows(m, k);
    s = layer_draw_spelling(m, k);
    loss_set_loss_attr(m, k, &s);
    loss_set_reduction(m, k, &s);
    if (s.init)
        layer_add_init(m, making_format(m, "self.%s = %s", s.module, making_expand(m, s.init)));
    layer_say_reference(m, making_expand(m, s.call));
    if (k->attr[0].name)
        making_set(m, k->attr[0].name, k->attr[0].name);
    making_set(m, "T", k->flags & KIND_CLASSES ? "int64_t" : "float");
    making_set(m, "uparam", three ? ", const float* u" : ""), making_set(m, "uhost", three ? ", torch::Tensor u" : "");
    making_set(m, "uarg", three ? ", u.data_ptr<float>()" : "");
    making_set(m, "body", making_expand(m, k->code));
    making_function(m, k->name, rowloss_text);
    layer_say_call(m, making_expand(m, three ? "ops.$f($x, $t, $u$more)" : "ops.$f($x, $t$more)"));
    return true;
}
