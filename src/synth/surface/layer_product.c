/* layer_product.c - linear layers and products of two inputs. */
#include "synth/surface/layer_parts.h"

#include <string.h>

/* ---- linear, parameters, means over space ---- */

static const char linear_text[] =
    "__global__ void $k_kernel(const float* x, const float* w, const float* b, float* out, int n, int in, int "
    "cols) {\n"
    "int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < n) {\nconst float* row = x + i / cols * in;\nconst "
    "float* weight = w + i % cols * in;\n"
    "float acc = b ? b[i % cols] : 0.0f;\nfor (int k = 0; k < in;) {\nfloat part = 0.0f;\nfor (int end = min(k + "
    "256, in); k < end; k++) {\npart += row[k] * weight[k];\n}\nacc += part;\n}\nout[i] = acc;\n}\n}\n\n"
    "torch::Tensor $f(torch::Tensor x, torch::Tensor w, torch::optional<torch::Tensor> b) {\nauto out = "
    "torch::empty({x.size(0), w.size(0)}, x.options());\n"
    "int n = out.numel();\n$k_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), w.data_ptr<float>(), b ? "
    "b->data_ptr<float>() : nullptr, "
    "out.data_ptr<float>(), n, w.size(1), w.size(0));\nreturn out;\n}\n";

bool layer_add_linear(struct making *m, const struct kind *k)
{
    const char *name, *in, *out;
    int d[2] = {making_draw(m, 2, 12), making_draw(m, 3, 32)}, n = 2 * making_draw(m, 2, 14);

    if (m->rank < 0)
        layer_make_input(m, making_pick(m, "batch_size in_features|batch_size input_size|batch_size input_dim", '|'), 2,
                         d, layer_draw_maker(m));
    if (m->rank != 2)
        return false;
    layer_flush(m);
    name = layer_name_module(m, making_pick(m, "linear|gemm|fc|linear|matmul|proj", '|'));
    in = m->channels
             ? m->channels
             : making_arg(m, making_pick(m, "in_features|in_features|input_size|input_dim", '|'), "int",
                          m->n_kinds ? layer_number(m, m->d[1]) : m->input[0].dim[1], NULL, "features of the input");
    out = making_arg(m, making_pick(m, "out_features|out_features|hidden_size|output_size", '|'), "int",
                     making_constant(m, "out_features", layer_number(m, n)), NULL, "features of the result");
    layer_add_init(m, making_format(m, "self.%s = nn.Linear(%s, %s%s)", name, in, out,
                                    making_chance(m, 0.9) ? "" : ", bias=False"));
    making_set(m, "m", name);
    layer_say_reference(m, making_expand(m, "self.$m($x)"));
    making_function(m, k->name, linear_text);
    layer_say_call(m, making_expand(m, "ops.$f($x, self.$m.weight, self.$m.bias)"));
    m->channels = out, m->d[1] = n;
    return true;
}

/* ---- products of two inputs ---- */

/* The operands' dimensions by the kind's shape, a letter each: matrices M K N, batch b, heads t, and 1. */
static const char *const product_shapes[][3] = {
    {"MK", "KN"}, {"KM", "KN"}, {"MK", "NK"}, {"KM", "NK"}, {"MK", "K1"}, {"NN", "NN"}, {"NN", "NN"}, {"NN", "NN"},
    {"N", "NM"}, {"bMK", "bKN"}, {"bMK", "KN"}, {"btMK", "KN"}, {"MN"}, {"MN"}, {"btMK", "btMK", "btMK"}};
#define PRODUCT_SHAPES (int)(sizeof product_shapes / sizeof *product_shapes)
enum { PRODUCT_UPPER = 6, PRODUCT_LOWER = 7 }; /* triangular matrices */

/* Draws the operands of that shape, with the names A, B and C as far as there are so many. */
static void product_draw_operands(struct making *m, int shape, const char *A, const char *B, const char *C)
{
    static const char letters[] = "MKNbt1";
    bool plain = making_chance(m, 0.7);
    const char *dim[] = {NULL, NULL, NULL, "1", "2", "1"}, *names[] = {A, B, C}, *maker;
    const char *const *dims = product_shapes[shape > 0 && shape < PRODUCT_SHAPES ? shape : 0];

    dim[0] = layer_size_name(m, plain ? "M" : "m", layer_draw_size(m, 40));
    dim[1] = layer_size_name(m, plain ? "K" : "k", layer_draw_size(m, shape == 0 && making_chance(m, 0.2) ? 300 : 40));
    dim[2] = layer_size_name(m, plain ? "N" : "n", layer_draw_size(m, shape == 0 && making_chance(m, 0.2) ? 6 : 40));
    maker = layer_draw_maker(m);
    if (shape >= 9 && shape != 12 && shape != 13) {
        dim[3] = layer_size_name(m, making_pick(m, "batch_size|batch|b", '|'), making_draw(m, 1, 5));
        dim[4] = layer_size_name(m, making_pick(m, "num_heads|heads|groups", '|'), making_draw(m, 1, 4));
    }
    maker = shape == PRODUCT_UPPER ? "torch.triu(torch.randn(%s))"
          : shape == PRODUCT_LOWER ? "torch.tril(torch.randn(%s))" : maker;
    for (int i = 0; i < 3 && dims[i]; i++) {
        struct making_input *in = layer_add_input(m, names[i], maker, "operand");
        in->rank = (int)strlen(dims[i]);
        for (int d = 0; d < in->rank; d++)
            in->dim[d] = dim[strchr(letters, dims[i][d]) - letters];
    }
}

/* A number that forward takes beside the matrix. */
static void product_add_scalar(struct making *m)
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

bool layer_add_matmul(struct making *m, const struct kind *k)
{
    const char *names = k->rank == 14 ? making_pick(m, "Q K V|q k v|query key value", '|')
                                      : making_pick(m, "A B C|A B C|a b c|x y z|left right more|mat1 mat2 mat3", '|');
    const char *A = layer_word(m, names, 0), *B = layer_word(m, names, 1), *C = layer_word(m, names, 2);
    int n = 0;

    if (m->chain || m->rank >= 0)
        return false;
    product_draw_operands(m, k->rank, A, B, C);
    making_set(m, "A", A), making_set(m, "B", B), making_set(m, "C", C);
    if (k->rank == 12)
        product_add_scalar(m);
    while (n < KIND_SPELLINGS && k->spell[n])
        n++;
    layer_say_reference(m, making_expand(m, k->spell[making_draw(m, 0, n - 1)]));
    making_function(m, k->fn ? k->fn : k->name, k->code);
    layer_say_call(m, making_expand(m, k->call));
    m->rank = 2;
    return true;
}
