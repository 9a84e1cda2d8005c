/* kinds_product.c - products of matrices: a thread for each element of the result. Accessors carry strides, so a
 * transposed view needs no kernel of its own. */
#include "synth/surface/kind.h"

#define MAT(n, s) .name = n, .family = "matmul", .say = s, .form = FORM_MATMUL
#define ACC(x, d) x ".packed_accessor32<float, " #d ">()"
/* A long sum in parts of 256: rounding grows with a part's length, not with the whole. */
#define PARTS(n, product)                                                                                              \
    "for (int k = 0; k < " n ";) {\nfloat part = 0.0f;\nfor (int end = min(k + 256, (int)" n "); k < end; k++) {\n"    \
    "part += " product ";\n}\nacc += part;\n}\n"
#define BODY(guard)                                                                                                    \
    "int i = blockIdx.x * blockDim.x + threadIdx.x;\nint rows = out.size(0);\nint cols = out.size(1);\n"               \
    "if (i < rows * cols) {\nint r = i / cols;\nint c = i % cols;\nfloat acc = 0.0f;\n" guard PARTS(                   \
        "a.size(1)", "a[r][k] * b[k][c]")
#define HOST2                                                                                                          \
    "torch::Tensor $f(torch::Tensor a, torch::Tensor b) {\n"                                                           \
    "auto out = torch::empty({a.size(0), b.size(1)}, a.options());\nint n = out.numel();\n"                            \
    "$k_kernel<<<(n + 255) / 256, 256>>>(" ACC("a", 2) ", " ACC("b", 2) ", " ACC("out", 2) ");\nreturn out;\n}\n"
#define HEAD2 "template <typename T>\n__global__ void $k_kernel(T a, T b, T out) {\n"
#define MM    HEAD2 BODY("") "out[r][c] = acc;\n}\n}\n\n" HOST2

/* rank: which shapes product.c draws. call: with $A and $B, the operands' names. */
const struct kind product_kinds[] = {
    {MAT("matmul", "matrix product|matrix multiplication|product of two matrices"), .rank = 0,
     .spell = {"torch.matmul($A, $B)", "torch.mm($A, $B)", "$A @ $B", "$A.matmul($B)", "$A.mm($B)",
               "torch.einsum('ik,kj->ij', $A, $B)"},
     .fn = "matmul", .code = MM, .call = "ops.$f($A, $B)"},
    {MAT("matmul_ta", "matrix product with the first operand transposed"), .rank = 1,
     .spell = {"torch.matmul($A.T, $B)", "torch.mm($A.t(), $B)", "$A.T @ $B", "torch.matmul($A.transpose(0, 1), $B)",
               "torch.einsum('ki,kj->ij', $A, $B)"},
     .fn = "matmul", .code = MM, .call = "ops.$f($A.T, $B)"},
    {MAT("matmul_tb", "matrix product with the second operand transposed"), .rank = 2,
     .spell = {"torch.matmul($A, $B.T)", "torch.mm($A, $B.t())", "$A @ $B.T", "torch.matmul($A, $B.transpose(0, 1))",
               "torch.einsum('ik,jk->ij', $A, $B)"},
     .fn = "matmul", .code = MM, .call = "ops.$f($A, $B.T)"},
    {MAT("matmul_tab", "product of two transposed matrices"), .rank = 3,
     .spell = {"torch.matmul($A.T, $B.T)", "torch.mm($A.t(), $B.t())", "$A.T @ $B.T", "($B @ $A).T"}, .fn = "matmul",
     .code = MM, .call = "ops.$f($A.T, $B.T)"},
    {MAT("matvec", "matrix times a column|matrix-vector product"), .rank = 4,
     .spell = {"torch.matmul($A, $B)", "$A @ $B", "torch.mm($A, $B)"}, .fn = "matmul", .code = MM,
     .call = "ops.$f($A, $B)"},
    {MAT("symmetric_matmul", "product of two symmetric matrices"), .rank = 5,
     .spell = {"torch.matmul($A, $B)", "torch.mm($A, $B)", "$A @ $B"}, .fn = "matmul", .code = MM,
     .call = "ops.$f($A, $B)"},
    {MAT("upper_matmul", "product of upper triangular matrices"), .rank = 6,
     .spell = {"torch.triu(torch.matmul($A, $B))", "torch.triu($A @ $B)", "torch.triu(torch.mm($A, $B))",
               "torch.matmul($A, $B).triu()"},
     .code = HEAD2 BODY("if (r <= c) {\n") "}\nout[r][c] = acc;\n}\n}\n\n" HOST2, .call = "ops.$f($A, $B)"},
    {MAT("lower_matmul", "product of lower triangular matrices"), .rank = 7,
     .spell = {"torch.tril(torch.matmul($A, $B))", "torch.tril($A @ $B)", "torch.tril(torch.mm($A, $B))",
               "torch.matmul($A, $B).tril()"},
     .code = HEAD2 BODY("if (r >= c) {\n") "}\nout[r][c] = acc;\n}\n}\n\n" HOST2, .call = "ops.$f($A, $B)"},
    {MAT("diag_matmul", "diagonal matrix times a matrix|scaling of rows by a vector"), .rank = 8,
     .spell = {"torch.diag($A) @ $B", "torch.matmul(torch.diag($A), $B)", "$A[:, None] * $B", "$A.unsqueeze(1) * $B",
               "$A.view(-1, 1) * $B"},
     .code = "__global__ void $k_kernel(const float* a, const float* b, float* out, int n, int cols) {\nint i = "
             "blockIdx.x * blockDim.x + threadIdx.x;\n"
             "if (i < n) {\nout[i] = a[i / cols] * b[i];\n}\n}\n\n"
             "torch::Tensor $f(torch::Tensor a, torch::Tensor b) {\nauto out = torch::empty_like(b);\nint n = "
             "b.numel();\n"
             "$k_kernel<<<(n + 255) / 256, 256>>>(a.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), "
             "n, b.size(1));\nreturn out;\n}\n",
     .call = "ops.$f($A, $B)"},
    {MAT("bmm", "batched matrix product|batch of matrix products"), .rank = 9,
     .spell = {"torch.bmm($A, $B)", "torch.matmul($A, $B)", "$A @ $B", "torch.einsum('bik,bkj->bij', $A, $B)"},
     .code = "template <typename T>\n__global__ void $k_kernel(T a, T b, T out) {\nint i = blockIdx.x * blockDim.x + "
             "threadIdx.x;\n"
             "int rows = out.size(1);\nint cols = out.size(2);\nif (i < out.size(0) * rows * cols) {\nint z = i / "
             "(rows * cols);\n"
             "int r = i / cols % rows;\nint c = i % cols;\nfloat acc = 0.0f;\n" PARTS(
                 "a.size(2)", "a[z][r][k] * b[z][k][c]") "out[z][r][c] = acc;\n}\n}\n\n"
                                                         "torch::Tensor $f(torch::Tensor a, torch::Tensor b) {\nauto "
                                                         "out = torch::empty({a.size(0), a.size(1), "
                                                         "b.size(2)}, a.options());\nint n = out.numel();\n"
                                                         "$k_kernel<<<(n + 255) / 256, 256>>>(" ACC("a", 3) ", " ACC(
                                                             "b", 3) ", " ACC("out", 3) ");\nreturn out;\n}\n",
     .call = "ops.$f($A, $B)"},
    {MAT("matmul_3d", "three-dimensional tensor times a matrix|batch of rows times one matrix"), .rank = 10,
     .spell = {"torch.matmul($A, $B)", "$A @ $B", "torch.einsum('bik,kj->bij', $A, $B)",
               "torch.einsum(\"nmk,kl->nml\", $A, $B)"},
     .fn = "matmul", .code = MM,
     .call = "ops.$f($A.reshape(-1, $A.size(-1)), $B).view($A.size(0), $A.size(1), $B.size(1))"},
    {MAT("matmul_4d", "four-dimensional tensor times a matrix"), .rank = 11,
     .spell = {"torch.einsum('abik,kj->abij', $A, $B)", "torch.matmul($A, $B)", "$A @ $B",
               "torch.einsum(\"bchw,wk->bchk\", $A, $B)"},
     .fn = "matmul", .code = MM,
     .call = "ops.$f($A.reshape(-1, $A.size(-1)), $B).view($A.size(0), $A.size(1), $A.size(2), $B.size(1))"},
    {MAT("scalar_matmul", "matrix times a scalar|scaling of a matrix"), .rank = 12,
     .spell = {"$A * $s", "$s * $A", "torch.mul($A, $s)"},
     .code = "__global__ void $k_kernel(const float* a, float* out, int n, float s) {\nint i = blockIdx.x * blockDim.x "
             "+ threadIdx.x;\n"
             "if (i < n) {\nout[i] = a[i] * s;\n}\n}\n\n"
             "torch::Tensor $f(torch::Tensor a, float s) {\nauto out = torch::empty_like(a);\nint n = a.numel();\n"
             "$k_kernel<<<(n + 255) / 256, 256>>>(a.data_ptr<float>(), out.data_ptr<float>(), n, s);\nreturn out;\n}\n",
     .call = "ops.$f($A, $s)"},
    {MAT("gram", "Gram matrix|product of a matrix with its own transpose"), .rank = 13,
     .spell = {"torch.matmul($A, $A.T)", "$A @ $A.t()", "torch.mm($A, $A.t())"}, .fn = "matmul", .code = MM,
     .call = "ops.$f($A, $A.T)"},
    {MAT("attention", "scaled dot-product attention|attention"), .rank = 14,
     .spell = {"F.scaled_dot_product_attention($A, $B, $C)",
               "torch.nn.functional.scaled_dot_product_attention($A, $B, $C)",
               "torch.softmax($A @ $B.transpose(-2, -1) / math.sqrt($A.size(-1)), dim=-1) @ $C",
               "torch.matmul(F.softmax(torch.matmul($A, $B.transpose(-2, -1)) / $A.size(-1) ** 0.5, dim=-1), $C)"},
     .code = "__global__ void scores_kernel(const float* q, const float* k, float* p, int rows, int queries, int "
             "keys, int dim) {\n"
             "int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < rows) {\nconst float* row = q + i * "
             "dim;\nconst float* key = k + i / queries * keys * dim;\n"
             "float best = -INFINITY;\nfor (int j = 0; j < keys; j++) {\nfloat dot = 0.0f;\nfor (int d = 0; d < "
             "dim; d++) {\ndot += row[d] * key[j * dim + d];\n}\n"
             "p[i * keys + j] = dot / sqrtf(dim);\nbest = fmaxf(best, p[i * keys + j]);\n}\nfloat sum = 0.0f;\nfor "
             "(int j = 0; j < keys; j++) {\n"
             "p[i * keys + j] = expf(p[i * keys + j] - best);\nsum += p[i * keys + j];\n}\nfor (int j = 0; j < "
             "keys; j++) {\np[i * keys + j] /= sum;\n}\n}\n}\n\n"
             "__global__ void $k_kernel(const float* p, const float* v, float* out, int n, int queries, int keys, "
             "int dim) {\n"
             "int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < n) {\nint row = i / dim;\nconst float* value "
             "= v + row / queries * keys * dim;\nfloat acc = 0.0f;\n"
             "for (int j = 0; j < keys; j++) {\nacc += p[row * keys + j] * value[j * dim + i % dim];\n}\nout[i] = "
             "acc;\n}\n}\n\n"
             "torch::Tensor $f(torch::Tensor q, torch::Tensor k, torch::Tensor v) {\nauto out = "
             "torch::empty_like(q);\nint dim = q.size(-1);\nint queries = q.size(-2);\n"
             "int keys = k.size(-2);\nint rows = q.numel() / dim;\nint n = q.numel();\nauto p = "
             "torch::empty({rows, keys}, q.options());\n"
             "scores_kernel<<<(rows + 255) / 256, 256>>>(q.data_ptr<float>(), k.data_ptr<float>(), "
             "p.data_ptr<float>(), rows, queries, keys, dim);\n"
             "$k_kernel<<<(n + 255) / 256, 256>>>(p.data_ptr<float>(), v.data_ptr<float>(), out.data_ptr<float>(), "
             "n, queries, keys, dim);\nreturn out;\n}\n",
     .call = "ops.$f($A, $B, $C)"},
    {0}};
