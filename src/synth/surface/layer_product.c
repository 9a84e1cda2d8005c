/* layer_product.c - linear layers and products of two inputs. */
#include "synth/surface/layer_parts.h"

#include <stdlib.h>
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

static void product_operand(struct making *m, const char *name, int rank, const char *const dims[], const char *maker)
{
    struct making_input *in = layer_add_input(m, name, maker, "operand");

    in->rank = rank;
    for (int i = 0; i < rank; i++)
        in->dim[i] = dims[i];
}

#define DIMS(...)                                                                                                      \
    (const char *const[])                                                                                              \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

/* Draws two matrices of that shape with the names A, B and C. */
static void product_draw_operands(struct making *m, int shape, const char *A, const char *B, const char *C)
{
    bool plain = making_chance(m, 0.7);
    const char *M = layer_size_name(m, plain ? "M" : "m", layer_draw_size(m, 40)),
               *K = layer_size_name(m, plain ? "K" : "k",
                                    layer_draw_size(m, shape == 0 && making_chance(m, 0.2) ? 300 : 40));
    const char *N = layer_size_name(m, plain ? "N" : "n",
                                    layer_draw_size(m, shape == 0 && making_chance(m, 0.2) ? 6 : 40)),
               *b = "1", *t = "2";
    const char *maker = layer_draw_maker(m), *upper = "torch.triu(torch.randn(%s))",
               *lower = "torch.tril(torch.randn(%s))";

    if (shape >= 9 && shape != 12 && shape != 13) {
        b = layer_size_name(m, making_pick(m, "batch_size|batch|b", '|'), making_draw(m, 1, 5));
        t = layer_size_name(m, making_pick(m, "num_heads|heads|groups", '|'), making_draw(m, 1, 4));
    }
    switch (shape) {
    case 1:
        product_operand(m, A, 2, DIMS(K, M), maker), product_operand(m, B, 2, DIMS(K, N), maker);
        break;
    case 2:
        product_operand(m, A, 2, DIMS(M, K), maker), product_operand(m, B, 2, DIMS(N, K), maker);
        break;
    case 3:
        product_operand(m, A, 2, DIMS(K, M), maker), product_operand(m, B, 2, DIMS(N, K), maker);
        break;
    case 4:
        product_operand(m, A, 2, DIMS(M, K), maker), product_operand(m, B, 2, DIMS(K, "1"), maker);
        break;
    case 5:
        product_operand(m, A, 2, DIMS(N, N), maker), product_operand(m, B, 2, DIMS(N, N), maker);
        break;
    case 6:
        product_operand(m, A, 2, DIMS(N, N), upper), product_operand(m, B, 2, DIMS(N, N), upper);
        break;
    case 7:
        product_operand(m, A, 2, DIMS(N, N), lower), product_operand(m, B, 2, DIMS(N, N), lower);
        break;
    case 8:
        product_operand(m, A, 1, DIMS(N), maker), product_operand(m, B, 2, DIMS(N, M), maker);
        break;
    case 9:
        product_operand(m, A, 3, DIMS(b, M, K), maker), product_operand(m, B, 3, DIMS(b, K, N), maker);
        break;
    case 10:
        product_operand(m, A, 3, DIMS(b, M, K), maker), product_operand(m, B, 2, DIMS(K, N), maker);
        break;
    case 11:
        product_operand(m, A, 4, DIMS(b, t, M, K), maker), product_operand(m, B, 2, DIMS(K, N), maker);
        break;
    case 12:
    case 13:
        product_operand(m, A, 2, DIMS(M, N), maker);
        break;
    case 14:
        product_operand(m, A, 4, DIMS(b, t, M, K), maker), product_operand(m, B, 4, DIMS(b, t, M, K), maker),
            product_operand(m, C, 4, DIMS(b, t, M, K), maker);
        break;
    default:
        product_operand(m, A, 2, DIMS(M, K), maker), product_operand(m, B, 2, DIMS(K, N), maker);
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
